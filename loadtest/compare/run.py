"""Compares the request path of hapax with a bare server and with servers that people write themselves.

All servers run on the first processor, and wrk on the second. In each round, every row is measured on one server after
another, so that a slow minute of the machine affects all servers. The table has the medians of the rates. It also has
the medians of the shares: a share is a rate divided by the rate of the bare server in the same round and row.
`make bench-http` builds the programs that this needs.
"""

import argparse
import http.client
import json
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
LINE_BYTES, PIECE_BYTES = 2304, 205
SERVER_CPU, CLIENT_CPU = "0", "1"


@dataclass
class Row:
    """One kind of request. It is sent to the bare server, to hapax, and to the servers in `peers`."""

    name: str
    path: str
    body: str
    connections: int = 64
    ids: bool = False
    peers: tuple[str, ...] = ()
    # The verdict, and the least number of matches, that an answer of hapax must have.
    verdict: str | None = None
    matches: int = 0
    rates: dict[str, list[float]] = field(default_factory=dict)


ALL = ("gaoya", "rensa", "datasketch")
# The build of `make pgo`, and that of `cargo build --release`.
HAPAX = ("hapax", "plain")


def rows(documents: str, million: bool) -> list[Row]:
    check, stored = "/v1/collections/default/check", "/v1/collections/{}/documents"
    made = [
        Row(f"check, unique, {documents}", check, "unique", peers=ALL, verdict="unique"),
        Row(f"check, 30 % near-duplicates, {documents}", check, "mix", peers=ALL),
        Row(f"check, all duplicates, {documents}", check, "duplicates", peers=ALL, verdict="near_duplicate", matches=1),
        Row(f"check, ten matches, {documents}", "/v1/collections/groups/check", "tens", verdict="near_duplicate", matches=10),
    ]
    if million:
        return made
    insert = stored.format("new")
    made += [
        Row(f"insert, new, {number} connections", insert, "pieces", number, ids=True, verdict="unique")
        for number in (1, 16, 64, 256)
    ]
    beside = stored.format("beside") + "?on_duplicate=store"
    made.append(Row("insert, stored beside duplicates, 64 connections", beside, "duplicates", ids=True, verdict="near_duplicate"))
    return made


class Server:
    def __init__(self, name: str, port: int, command: list[str], **options) -> None:
        self.name, self.port = name, port
        self.process = subprocess.Popen(["taskset", "-c", SERVER_CPU, *command], stdout=subprocess.PIPE, **options)

    def wait_until_ready(self) -> None:
        """Waits for the first line of the server. Nothing else is read, because the server writes only this line."""
        if not self.process.stdout.readline():
            sys.exit(f"{self.name} did not start")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Comparison:
    def __init__(self, options: argparse.Namespace, work: Path) -> None:
        self.options, self.work = options, work
        self.servers: dict[str, Server] = {}
        self.tag = 0

    def bodies(self, kind: str, count: int, documents: int) -> Path:
        path = self.work / f"{kind}-{documents}.ndjson"
        if not path.exists():
            command = [self.options.loadtest, "bodies", kind, "--count", str(count), "--documents", str(documents)]
            with path.open("wb") as file:
                subprocess.run(command, stdout=file, check=True)
        return path

    def start(self, name: str, command: list[str], documents: Path | None = None) -> None:
        port = self.options.port + len(self.servers)
        command = [part.replace("ADDRESS", f"127.0.0.1:{port}") for part in command]
        with documents.open("rb") if documents else open("/dev/null", "rb") as stdin:
            self.servers[name] = Server(name, port, command, stdin=stdin)
        self.servers[name].wait_until_ready()

    def start_hapax(self, name: str, program: str) -> None:
        port = self.options.port + len(self.servers)
        command = [program, "serve", "--data-dir", str(self.work / f"data-{name}"), "--listen", f"127.0.0.1:{port}"]
        log = (self.work / f"{name}.log").open("wb")
        self.servers[name] = Server(name, port, command, stdin=subprocess.DEVNULL, stderr=log)
        self.call(name, "GET", "/readyz", None, wait=True)

    def call(self, server: str, method: str, path: str, body: bytes | None, wait: bool = False) -> dict:
        last = None
        for _ in range(600 if wait else 1):
            connection = http.client.HTTPConnection("127.0.0.1", self.servers[server].port, timeout=60)
            try:
                connection.request(method, path, body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                text = answer.read()
                if answer.status < 300:
                    return json.loads(text) if text.startswith(b"{") else {}
                last = f"{answer.status} {text[:300]!r}"
            except OSError as error:
                last = error
            finally:
                connection.close()
            if wait:
                time.sleep(0.1)
        sys.exit(f"{server}: {method} {path}: {last}")

    def import_documents(self, server: str, collection: str, kind: str, count: int) -> float:
        """Imports over loopback, and returns the documents per second."""
        self.call(server, "PUT", f"/v1/collections/{collection}", b"{}")
        path = self.bodies(kind, count, count)
        url = f"http://127.0.0.1:{self.servers[server].port}"
        command = ["taskset", "-c", CLIENT_CPU, self.options.hapax, "import", str(path), "--server", url]
        command += ["--collection", collection, "--on-duplicate", "store"]
        began = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return count / (time.monotonic() - began)

    def judge(self, row: Row) -> None:
        """Sends a few requests of the row. Fails if the answers of hapax have the wrong verdict or too few matches."""
        if row.ids or row.verdict is None:
            return
        lines = self.file(row).read_bytes().splitlines()[:200]
        for server in (name for name in HAPAX if name in self.servers):
            right = 0
            for line in lines:
                answer = self.call(server, "POST", row.path, line)
                right += answer["verdict"] == row.verdict and len(answer["matches"]) >= row.matches
            if right < 0.98 * len(lines):
                sys.exit(f"{row.name} on {server}: only {right} of {len(lines)} answers are {row.verdict} with {row.matches} matches")

    def file(self, row: Row) -> Path:
        documents = self.options.documents
        count = 40_000 if row.body == "pieces" else min(documents, self.options.bodies_max)
        return self.bodies(row.body, count, documents)

    def measure(self, row: Row, server: str, path: str | None = None) -> float:
        self.tag += 1
        kind, length = ("pieces", PIECE_BYTES) if row.body == "pieces" else ("lines", LINE_BYTES)
        command = ["taskset", "-c", CLIENT_CPU, "wrk", "-t1", "--timeout", "30s", f"-c{row.connections}", f"-d{self.options.seconds}s"]
        command += ["-s", str(HERE / "send.lua"), f"http://127.0.0.1:{self.servers[server].port}", "--", path or row.path, kind]
        command += [str(self.file(row)), str(length)] + ([f"r{self.tag:04}-"] if row.ids else [])
        stores = row.ids and server in HAPAX
        before = self.stored(server, row) if stores else 0
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        if "Socket errors" in out:
            sys.exit(f"{row.name} on {server} had errors:\n{out}")
        requests, seconds = re.search(r"(\d+) requests in ([\d.]+)s", out).groups()
        refused = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
        # An overloaded server refuses some requests. Only good answers count.
        good = int(requests) - (int(refused[1]) if refused else 0)
        if good < 0.95 * int(requests):
            print(f"{row.name} on {server}: {int(requests) - good} of {requests} were refused", file=sys.stderr)
        if stores and self.stored(server, row) - before < good:
            sys.exit(f"{row.name} on {server}: {good} good answers, but only {self.stored(server, row) - before} documents are stored")
        return good / float(seconds)

    def stored(self, server: str, row: Row) -> int:
        """Returns how many documents the row's collection has."""
        return self.call(server, "GET", row.path.split("/documents")[0], None)["documents"]

    def round(self, rows: list[Row], number: int) -> None:
        # A processor that becomes slower or faster in a round must not favour one of the two builds.
        builds = HAPAX if number % 2 == 0 else HAPAX[::-1]
        for row in rows:
            for server in ("bare", *builds, *row.peers):
                if server in self.servers:
                    rate = self.measure(row, server)
                    row.rates.setdefault(server, []).append(rate)
            shares = ", ".join(f"{name} {rates[-1]:.0f}" for name, rates in row.rates.items())
            print(f"{row.name}: {shares}", file=sys.stderr, flush=True)

    def stop(self) -> None:
        for server in self.servers.values():
            server.stop()


def table(rows: list[Row]) -> str:
    lines = [
        "| requests | bare server/s | hapax/s | hapax, share of bare | plain build of hapax | axum + gaoya | FastAPI + rensa | FastAPI + datasketch |"
    ]
    lines.append("|---|--:|--:|--:|--:|--:|--:|--:|")
    for row in rows:
        bare = row.rates["bare"]

        def share(server: str, spread: bool = False) -> str:
            shares = [rate / base for rate, base in zip(row.rates.get(server, []), bare)]
            if not shares:
                return ""
            median = f"{statistics.median(shares):.3f}"
            return f"{median} ({min(shares):.3f} to {max(shares):.3f})" if spread else median

        rate = lambda server: f"{statistics.median(row.rates[server]):,.0f}"
        cells = [row.name, rate("bare"), rate("hapax"), share("hapax", True), *(share(peer) for peer in ("plain", *ALL))]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hapax", required=True, help="the program hapax, as `make pgo` builds it")
    parser.add_argument("--plain", help="the program hapax, as cargo builds it [default: leave it out]")
    parser.add_argument("--loadtest", required=True, help="the program hapax-loadtest")
    parser.add_argument("--peers", required=True, type=Path, help="the folder of hapax-compare-bare and -gaoya")
    parser.add_argument("--python", help="a Python with fastapi, uvicorn, rensa and datasketch [default: leave them out]")
    parser.add_argument("--documents", type=int, default=100_000, help="stored documents [default: 100000]")
    parser.add_argument("--bodies-max", type=int, default=400_000, help="the most different checks [default: 400000]")
    parser.add_argument("--seconds", type=int, default=4, help="seconds of each measurement [default: 4]")
    parser.add_argument("--rounds", type=int, default=3, help="[default: 3]")
    parser.add_argument("--rows", default="", help="only rows whose name has this text")
    parser.add_argument("--port", type=int, default=18_700, help="the first of some ports [default: 18700]")
    parser.add_argument("--json", type=Path, help="write all rates to this file")
    options = parser.parse_args()
    for program in ("wrk", "taskset"):
        if not shutil.which(program):
            sys.exit(f"{program} is missing; install it with the system's packages")
    work = Path(tempfile.mkdtemp(prefix="hapax-compare-"))
    comparison = Comparison(options, work)
    chosen = [row for row in rows(f"{options.documents:,}", options.documents >= 1_000_000) if options.rows in row.name]
    try:
        compare(comparison, chosen, options)
    finally:
        comparison.stop()
        shutil.rmtree(work)


def import_all(comparison: Comparison, server: str, chosen: list[Row], options: argparse.Namespace) -> list[float]:
    """Fills the collections that the rows need, and returns the documents per second of each import."""
    imported = [comparison.import_documents(server, "default", "documents", options.documents)]
    if any(row.body == "tens" for row in chosen):
        imported.append(comparison.import_documents(server, "groups", "groups", options.documents))
    for collection, count in (("new", 1_000), ("beside", options.documents)):
        if any(f"/{collection}/" in row.path for row in chosen):
            imported.append(comparison.import_documents(server, collection, "documents", count))
    return imported


def compare(comparison: Comparison, chosen: list[Row], options: argparse.Namespace) -> None:
    comparison.start("bare", [str(options.peers / "hapax-compare-bare"), "ADDRESS"])
    imported: dict[str, list[float]] = {}
    for server, program in zip(HAPAX, (options.hapax, options.plain)):
        if program:
            comparison.start_hapax(server, program)
            imported[server] = import_all(comparison, server, chosen, options)
    peers = {peer for row in chosen for peer in row.peers}
    stored = comparison.bodies("documents", options.documents, options.documents)
    if "gaoya" in peers:
        comparison.start("gaoya", [str(options.peers / "hapax-compare-gaoya"), "ADDRESS"], stored)
    for peer in ("rensa", "datasketch"):
        if peer in peers and options.python:
            comparison.start(peer, [options.python, str(HERE / "peers.py"), peer, "ADDRESS"], stored)
    for row in chosen:
        comparison.judge(row)
    sink = {row.body: comparison.measure(row, "bare", "/sink") for row in chosen}
    for number in range(options.rounds):
        comparison.round(chosen, number)
    print(table(chosen))
    for server, rates in imported.items():
        print(f"\n{server}: import, {options.documents:,} documents each: {', '.join(f'{rate:,.0f}/s' for rate in rates)}")
    print("wrk alone, against a server that does not look at bodies: " + ", ".join(f"{k} {v:,.0f}/s" for k, v in sink.items()))
    if options.json:
        options.json.write_text(json.dumps({row.name: row.rates for row in chosen}, indent=1))


if __name__ == "__main__":
    main()
