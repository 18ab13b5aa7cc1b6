"""The examples of docs/python.md and docs/load.md print the output that the pages show. With HAPAX_RECORD=1, the test
writes their output into the pages.

Commands are run if HAPAX_BINARY names a server. Otherwise, commands and examples that need a server are left out.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess

import pytest
from conftest import page_path
from served import BINARY, Served, environment

RUN = "<!-- not run: the tests of the Python package run it -->\n"
BLOCK = re.compile(rf"^(?:```python|{RUN}```(sh))\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
# The address of a server in the pages.
SHOWN = "http://127.0.0.1:8080"


class Session:
    """Runs the examples of a page, one after another."""

    def __init__(self, folder, with_server):
        self.folder, self.with_server, self.names, self.server = folder, with_server, {}, None

    def run(self, example, line):
        """Returns what an example prints, or None if it needs a server and there is none."""
        kind, code, _ = example.groups()
        asks = SHOWN in code or "client." in code
        if not self.with_server and (kind == "sh" or asks):
            return None
        if asks and self.server is None:
            self.serve("tutorial")
        if kind == "sh":
            return self.command(code)
        if self.server is not None:
            code = code.replace(SHOWN, self.server.url)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile("\n" * (line - 1) + code, "page.md", "exec"), self.names)
        return output.getvalue()

    def serve(self, data):
        if self.server is not None:
            self.server.stop()
        self.server = Served(self.folder, data)

    def command(self, code):
        printed = ""
        for command in code.splitlines():
            program, verb, *rest = shlex.split(command)
            assert program == "hapax"
            if verb == "serve":
                assert rest[0] == "--data-dir"
                self.serve(rest[1])
                continue
            options = {"cwd": self.folder, "env": environment(), "capture_output": True, "text": True}
            ran = subprocess.run([BINARY, verb, *rest], check=False, **options)
            assert ran.returncode == 0, ran.stderr
            printed += ran.stdout
        return printed


@pytest.mark.parametrize(
    ("name", "with_server"), [("python.md", False), ("python.md", True), ("load.md", False)], ids=str
)
def test_every_example_of_the_page_prints_what_it_shows(name, with_server, tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    if with_server and not BINARY:
        pytest.skip("HAPAX_BINARY names no server")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    if name == "load.md":
        texts = pa.table({"id": ["a", "b"], "text": ["a text of some words", "and another one"]})
        pytest.importorskip("pyarrow.parquet").write_table(texts, "texts.parquet")
    page = page_path(name).read_text(encoding="utf-8")
    examples, session, printed = list(BLOCK.finditer(page)), Session(tmp_path, with_server), []
    assert len(examples) >= (12 if name == "python.md" else 1)
    try:
        for example in examples:
            text = session.run(example, page[: example.start(2)].count("\n") + 1)
            printed.append((example[3] or "") if text is None else text)
    finally:
        if session.server is not None:
            session.server.stop()
    if os.environ.get("HAPAX_RECORD"):
        record(name, page, examples, printed)
    for example, text in zip(examples, printed, strict=True):
        assert text == (example[3] or ""), f"the example in line {page[: example.start(2)].count(chr(10))}"


def record(name, page, examples, printed):
    made, at = [], 0
    for example, text in zip(examples, printed, strict=True):
        made.append(page[at : example.end(2)] + "```\n" + (f"```text\n{text}```\n" if text else ""))
        at = example.end()
    page_path(name).write_text("".join(made) + page[at:], encoding="utf-8")
