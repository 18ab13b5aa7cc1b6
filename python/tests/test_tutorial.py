"""The examples of docs/python.md print what the page shows. HAPAX_RECORD=1 writes what they print into the page.

Those of the section about the client need a server. Without HAPAX_BINARY they are left out.
"""

import contextlib
import io
import os
import re

import pytest
from conftest import PAGES
from served import BINARY, Served

BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
# The server of the examples, by the address that the page has.
ADDRESS = "http://127.0.0.1:8080"


@pytest.fixture
def address(tmp_path):
    """The address of a server, or None."""
    if not BINARY:
        yield None
        return
    folder = tmp_path / "server"
    folder.mkdir()
    with Served(folder) as server:
        yield server.url


def test_every_example_of_the_page_prints_what_it_shows(page, tmp_path, monkeypatch, address):
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    begin = page.index("\n## A client\n")
    end = page.index("\n## ", begin + 1)
    examples = list(BLOCK.finditer(page))
    of_client = [example for example in examples if begin < example.start() < end]
    assert len(of_client) >= 5
    if address is None:
        examples = [example for example in examples if example not in of_client]
    assert len(examples) >= 12
    names, printed = {}, []
    for example in examples:
        line = page[: example.start()].count("\n") + 2
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            source = example[1].replace(ADDRESS, address or ADDRESS)
            exec(compile("\n" * (line - 1) + source, "python.md", "exec"), names)
        printed.append(output.getvalue())
    if os.environ.get("HAPAX_RECORD"):
        record(page, examples, printed)
    for example, text in zip(examples, printed, strict=True):
        assert text == (example[2] or ""), f"the example in line {page[: example.start()].count(chr(10)) + 1}"


def record(page, examples, printed):
    made, at = [], 0
    for example, text in zip(examples, printed, strict=True):
        made.append(page[at : example.end(1)] + "```\n" + (f"```text\n{text}```\n" if text else ""))
        at = example.end()
    next(path for path in PAGES if path.exists()).write_text("".join(made) + page[at:], encoding="utf-8")
