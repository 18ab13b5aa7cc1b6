"""The examples of docs/python.md print what the page shows. HAPAX_RECORD=1 writes what they print into the page."""

import contextlib
import io
import os
import re

import pytest
from conftest import PAGES

BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def test_every_example_of_the_page_prints_what_it_shows(page, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    names, printed, examples = {}, [], list(BLOCK.finditer(page))
    assert len(examples) >= 12
    for example in examples:
        line = page[: example.start()].count("\n") + 2
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile("\n" * (line - 1) + example[1], "python.md", "exec"), names)
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
