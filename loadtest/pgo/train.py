"""Uses hapax in all the ways that should be fast.

`make pgo` runs this with a build that counts which code runs how often, and then compiles hapax again with these counts.
Functions that are never called here, such as those of TLS and HTTP/2, are compiled as without counts. In functions
that are called, the parts that never run here become slower, so each common kind of request and text has a step.
"""

import argparse
import http.client
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from texts import Source, lines

SCRIPTS = ("english", "accented", "cyrillic", "chinese")
# Collections, and the options that create them. `default` already exists.
SETTINGS = {
    "default": [],
    "exact": ["--verify", "exact", "--keep", "text"],
    "borderline": ["--verify", "borderline", "--keep", "shingles"],
    "characters": ["--shingle", "char5", "--marks", "strip", "--digits", "zero"],
}
CLIENTS = 4
# Seconds that a start, a stop or a command may take. The server that counts is several times slower than others.
PATIENCE = 600


class Server:
    """A server on a free port. It is ended by SIGTERM, as by an operator, because it writes its counts only then."""

    def __init__(self, binary: Path, data: Path) -> None:
        command = [binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", data]
        self.log = data.with_suffix(".log")
        with self.log.open("wb") as file:
            # Ctrl-C reaches only this program, which then ends the server.
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True, start_new_session=True)
        slow = threading.Timer(PATIENCE, self.process.kill)
        slow.start()
        words = self.process.stdout.readline().split()
        slow.cancel()
        self.url = next((word for word in words if word.startswith("http://")), None)
        if self.url is None:
            self.process.kill()
            sys.exit(f"the server did not become ready: {self.log.read_text()[-2000:]}")

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, error: type | None, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        if status != 0 and error is None:
            sys.exit(f"the server ended with status {status}: {self.log.read_text()[-2000:]}")

    def post(self, path: str, bodies: list[bytes], media_type: str = "application/json") -> None:
        """Sends each body in a request of its own, through several connections."""

        def send(part: list[bytes]) -> None:
            with closing(http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=60)) as connection:
                for body in part:
                    connection.request("POST", path, body, {"Content-Type": media_type})
                    answer = connection.getresponse()
                    text = answer.read()
                    if answer.status >= 300:
                        raise RuntimeError(f"POST {path}: {answer.status} {text[:300]!r}")

        with ThreadPoolExecutor(CLIENTS) as clients:
            list(clients.map(send, (bodies[first::CLIENTS] for first in range(CLIENTS))))


class Training:
    def __init__(self, options: argparse.Namespace, work: Path) -> None:
        self.options, self.work = options, work
        self.documents: int = options.documents

    def run(self, program: Path, *arguments: object, ends: tuple[int, ...] = (0,)) -> str:
        command = [str(part) for part in (program, *arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
        if done.returncode not in ends:
            sys.exit(f"{' '.join(command)}\nended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def hapax(self, *arguments: object, ends: tuple[int, ...] = (0,)) -> None:
        self.run(self.options.hapax, *arguments, ends=ends)

    def file(self, name: str, text: str) -> Path:
        path = self.work / name
        path.write_text(text, encoding="utf-8")
        return path

    def requests(self) -> None:
        """Single requests of many clients. They are most of the training, because they are most of a server's work."""
        for scenario in ("check", "insert", "mixed", "bulk"):
            with Server(self.options.hapax, self.work / scenario) as server:
                arguments = ["--server", server.url, "--documents", self.documents, "--seconds", self.options.seconds]
                clients = [] if scenario == "bulk" else ["--clients", 64]
                self.run(self.options.loadtest, scenario, *arguments, *clients)

    def duplicates(self, server: Server) -> None:
        """Checks that find ten matches or one match, and inserts of documents that have one match."""
        bodies = lambda kind: self.run(
            self.options.loadtest, "bodies", kind, "--count", self.documents, "--documents", self.documents
        )
        for stored, asked in (("groups", "tens"), ("documents", "duplicates")):
            file = self.file(f"{stored}.jsonl", bodies(stored))
            self.hapax("import", file, "--server", server.url, "--collection", stored, "--create", "--on-duplicate", "store")
            checks = bodies(asked).encode().splitlines()
            server.post(f"/v1/collections/{stored}/check", checks)
        inserts = [b'{"id": "again-%d", %b' % (number, check[1:]) for number, check in enumerate(checks)]
        server.post("/v1/collections/documents/documents?on_duplicate=store", inserts)

    def kinds(self, server: Server) -> None:
        """Texts of several scripts, pages of HTML, and collections with other settings than the default."""
        some = self.documents // 5
        near = ("--on-duplicate", "link", "--on-existing", "replace")
        for number, script in enumerate(SCRIPTS):
            texts = lines(Source(script, 2_000, number), some, "text")
            file = self.file(f"{script}.jsonl", texts)
            for collection, options in SETTINGS.items():
                create = ["--create", *options] if options else []
                self.hapax("import", file, "--server", server.url, "--collection", collection, *create, *near)
                self.hapax("check", file, "--server", server.url, "--collection", collection, ends=(0, 1))
            server.post("/v1/collections/default/check?scope=host:1.example", texts.encode().splitlines()[: some // 2])
        pages = lines(Source("english", 6_000, 9), some, "html")
        file = self.file("pages.jsonl", pages)
        self.hapax("import", file, "--server", server.url, "--collection", "pages", "--create", *near)
        server.post("/v1/collections/pages/check", pages.encode().splitlines())
        source = Source("english", 300_000, 0)
        server.post("/v1/collections/default/check", [source.text().encode() for _ in range(40)], "text/plain")

    def upkeep(self, server: Server) -> None:
        """The work of operators and data teams with a whole collection."""
        at = ("--server", server.url)
        self.hapax("export", *at, "--collection", "groups", "--clusters", "--output", self.work / "clusters.jsonl")
        self.hapax("export", *at, "--collection", "default", "--pairs", "--output", self.work / "pairs.jsonl")
        self.hapax("collection", "merge", "default", "--from", "documents", *at, "--on-duplicate", "link")
        self.hapax("collection", "set", "documents", "--threshold", "0.7", *at)

    def files(self, data: Path) -> None:
        """The commands that open a data directory. No server uses the directory at that time."""
        at = ("--data-dir", data)
        signatures = self.work / "signatures.parquet"
        self.hapax("export", *at, "--collection", "documents", "--parquet", "--output", signatures)
        self.hapax("load", signatures, *at, "--collection", "loaded")
        self.hapax("verify", *at)

    def all(self) -> None:
        self.requests()
        data = self.work / "data"
        with Server(self.options.hapax, data) as server:
            self.duplicates(server)
            self.kinds(server)
            self.upkeep(server)
        self.files(data)
        # A start builds the index.
        with Server(self.options.hapax, data):
            pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hapax", required=True, type=Path, help="the program hapax")
    parser.add_argument("--loadtest", required=True, type=Path, help="the program hapax-loadtest")
    parser.add_argument("--documents", type=int, default=20_000, help="documents of the largest collections [default: 20000]")
    parser.add_argument("--seconds", type=float, default=5, help="seconds of each phase of single requests [default: 5]")
    options = parser.parse_args()
    for program in (options.hapax, options.loadtest):
        if not program.is_file():
            sys.exit(f"{program} is not a file")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    with tempfile.TemporaryDirectory(prefix="hapax-pgo-") as work:
        Training(options, Path(work)).all()


if __name__ == "__main__":
    main()
