"""A hapax in front of a cluster, and the requests that are sent to it."""

import argparse
import http.client
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from nodes import Cluster

SEND = Path(__file__).resolve().parents[1] / "compare" / "send.lua"
LINE_BYTES, PIECE_BYTES = 2304, 205
DOCUMENTS = "/v1/collections/default"
# A bulk request may have so many lines.
BULK_LINES_MAX = 20_000
# The requests that load documents, at the same time.
LOADERS, LOADED_LINES = 16, 1_000
PIECES, CHECKS = 40_000, 20_000


class Texts:
    """Texts of 2 KB that resemble nothing: for hapax and for datasketch."""

    def __init__(self, loadtest: str, folder: Path) -> None:
        self.pieces_file, self.checks_file = folder / "pieces", folder / "checks"
        for path, kind, count in ((self.pieces_file, "pieces", PIECES), (self.checks_file, "unique", CHECKS)):
            with path.open("wb") as file:
                subprocess.run([loadtest, "bodies", kind, "--count", str(count)], stdout=file, check=True)
        self.pieces = self.pieces_file.read_bytes().splitlines()
        self.to_check = Requests(f"{DOCUMENTS}/check", ["lines", self.checks_file, LINE_BYTES])

    def documents(self, seed: str, count: int) -> list[bytes]:
        """Returns texts that consist of ten random pieces each, as `send.lua` makes them."""
        chance = random.Random(seed)
        return [b"".join(chance.choices(self.pieces, k=10)) for _ in range(count)]

    def checks(self, count: int) -> list[bytes]:
        with self.checks_file.open("rb") as file:
            return [json.loads(line)["text"].encode() for line in itertools.islice(file, count)]


@dataclass
class Requests:
    """The requests that wrk sends: the lines of a file, or documents that it makes of pieces in a file and that get new ids."""

    path: str
    tail: list[str | int | Path]

    @classmethod
    def of_text(cls, text: str, file: Path) -> "Requests":
        """Checks of one text."""
        file.write_text(json.dumps({"text": text}).ljust(LINE_BYTES - 1) + "\n")
        return cls(f"{DOCUMENTS}/check", ["lines", file, LINE_BYTES])


@dataclass
class Load:
    """Good answers, as wrk counted them, or documents of a bulk request."""

    good: int
    rate: float
    # The milliseconds of an answer, by percentile.
    ms: dict[int, float] = field(default_factory=dict)
    failed: int = 0


class Hapax:
    """A server with this configuration. Without a cluster, it stores its documents on disk."""

    def __init__(
        self, binary: str, folder: Path, cluster: Cluster | None, settings: dict[str, dict[str, object]]
    ) -> None:
        folder.mkdir()
        self.config, self.data = folder / "hapax.toml", folder / "data"
        sections: dict[str, dict[str, object]] = {"data": {"dir": str(self.data)}}
        if cluster:
            sections["data"]["store"] = "redis"
            # A busy machine must not end the benchmark.
            sections["redis"] = {"nodes": cluster.addresses[:3], "timeout_ms": 10_000, **settings.pop("redis", {})}
        lines = []
        for section, values in {**sections, **settings}.items():
            lines += [f"[{section}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
        self.config.write_text("\n".join(lines) + "\n")
        command = [binary, "serve", "--config", self.config, "--listen", "127.0.0.1:0"]
        log = (folder / "hapax.log").open("wb")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        ready = self.process.stdout.readline()
        if "ready on" not in ready:
            sys.exit(f"hapax did not start:\n{(folder / 'hapax.log').read_text()}")
        self.address = ready.split("ready on http://")[1].split()[0]
        self.sent = 0

    def call(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> bytes:
        connection = http.client.HTTPConnection(self.address, timeout=600)
        try:
            connection.request(method, path, body, {"Content-Type": kind})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            sys.exit(f"{method} {path}: {answer.status} {text[:300]!r}")
        return text

    def processor_s(self) -> float:
        """Returns how long the process has used a processor."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def documents(self) -> int:
        return json.loads(self.call("GET", DOCUMENTS))["documents"]

    def check(self, text: str) -> dict:
        return json.loads(self.call("POST", f"{DOCUMENTS}/check", json.dumps({"text": text}).encode()))

    def bulk(self, lines: list[bytes]) -> None:
        """Inserts documents by one bulk request. All must be new."""
        answer = self.call("POST", f"{DOCUMENTS}/bulk?op=insert", b"\n".join(lines), "application/x-ndjson")
        *verdicts, summary = answer.splitlines()
        if json.loads(summary).get("summary", {}).get("stored") != len(lines):
            bad = next((line for line in verdicts if b'"stored":true' not in line), summary)
            sys.exit(f"a bulk request should store {len(lines)} documents: {summary!r}, {bad!r}")

    def lines(self, texts: Texts, count: int, id_bytes: int = 50) -> list[bytes]:
        """Returns lines of a bulk request: new documents, whose ids have so many bytes."""
        self.sent += 1
        before = f"https://example.org/{self.sent:07}/".ljust(id_bytes - 12, "-")
        ids = (f"{before}{number:012}" for number in range(count))
        made = texts.documents(f"bulk {self.sent}", count)
        return [b'{"id":"%s","text":"%s"}' % (id.encode(), text) for id, text in zip(ids, made, strict=True)]

    def load(self, texts: Texts, count: int, id_bytes: int = 50) -> None:
        """Stores documents as fast as possible."""
        with ThreadPoolExecutor(LOADERS) as pool:
            sizes = [min(LOADED_LINES, count - first) for first in range(0, count, LOADED_LINES)]
            list(pool.map(lambda size: self.bulk(self.lines(texts, size, id_bytes)), sizes))

    def insert(self, texts: Texts, connections: int, seconds: float) -> Load:
        self.sent += 1
        before = self.documents()
        prefix = f"https://example.org/w{self.sent:06}/".ljust(38, "-")
        requests = Requests(f"{DOCUMENTS}/documents", ["pieces", texts.pieces_file, PIECE_BYTES, prefix])
        load = self.send(requests, connections, seconds)
        self.wait_until_stored(before + load.good)
        return load

    def send(self, requests: Requests, connections: int, seconds: float, pause_ms: float | None = None) -> Load:
        """Sends requests on several connections. With a pause, a connection waits so long on average before each."""
        command = ["wrk", "-t1", "--latency", "--timeout", "30s", f"-c{connections}", f"-d{seconds}s", "-s", SEND]
        command += [f"http://{self.address}", "--", requests.path, *requests.tail]
        environment = {**os.environ, **({"HAPAX_PAUSE_MS": str(pause_ms)} if pause_ms else {})}
        run = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True, env=environment)
        sent, taken, unit = re.search(r"(\d+) requests in ([\d.]+)(s|m)", run.stdout).groups()
        refused = re.search(r"Non-2xx or 3xx responses: (\d+)", run.stdout)
        # An overloaded server refuses some requests. Only good answers count.
        failed = int(refused[1]) if refused else 0
        good = int(sent) - failed
        if "Socket errors" in run.stdout or good < 0.95 * int(sent):
            sys.exit(f"{requests.path} had errors:\n{run.stdout}")
        rate = good / (float(taken) * (60 if unit == "m" else 1))
        return Load(good, rate, {percent: latency_ms(run.stdout, percent) for percent in (50, 99)}, failed)

    def wait_until_stored(self, count: int) -> None:
        """Waits until the server has counted all good answers. It counts in the background."""
        for _ in range(100):
            if self.documents() >= count:
                return
            time.sleep(0.1)
        sys.exit(f"{count} documents should be stored, but only {self.documents()} are")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def start(stack: ExitStack, options: argparse.Namespace, folder: Path, documents: int) -> tuple[Cluster, Hapax]:
    """Starts a cluster, and in front of it a hapax that expects so many documents. Both end with the stack."""
    folder.mkdir()
    nodes = Cluster(folder / "nodes", options.server)
    stack.callback(nodes.stop)
    settings = {"redis": {"documents_expected": documents, "acks": 1}}
    hapax = Hapax(options.hapax, folder / "hapax", nodes, settings)
    stack.callback(hapax.stop)
    return nodes, hapax


def latency_ms(out: str, percent: int) -> float:
    value, unit = re.search(rf"^ +{percent}% +([\d.]+)(us|ms|s)", out, re.MULTILINE).groups()
    return float(value) * {"us": 0.001, "ms": 1, "s": 1000}[unit]
