"""datasketch on one Redis: processes that check and insert signatures that are ready before the time begins."""

import multiprocessing
import random
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

from datasketch import MinHash, MinHashLSH

BANDS, ROWS, SLOTS = 16, 8, 128
WORDS = 5
CLIENTS_MAX = 8
# The signatures that a process checks, one after another.
CHECKED = 500
# The signatures that all processes together have ready for a second of inserts. Processes that need more stop earlier.
READY_PER_SECOND = 2_500


def shingles(text: bytes) -> list[bytes]:
    words = text.lower().split()
    return [b" ".join(words[at : at + WORDS]) for at in range(max(len(words) - WORDS + 1, 1))]


@dataclass
class Client:
    """The state of one process."""

    number: int
    port: int
    pieces: list[bytes]
    checked: list[MinHash] = field(default_factory=list)
    ready: list[MinHash] = field(default_factory=list)
    inserted: int = 0

    def __post_init__(self) -> None:
        storage = {"type": "redis", "basename": b"bench", "redis": {"host": "127.0.0.1", "port": self.port}}
        self.index = MinHashLSH(params=(BANDS, ROWS), num_perm=SLOTS, storage_config=storage)
        self.empty = MinHash(num_perm=SLOTS)
        self.chance = random.Random(f"datasketch {self.number}")

    def sign(self, text: bytes) -> MinHash:
        signature = self.empty.copy()
        signature.update_batch(shingles(text))
        return signature

    def new(self) -> MinHash:
        return self.sign(b"".join(self.chance.choices(self.pieces, k=10)))

    def next_id(self) -> str:
        self.inserted += 1
        return f"https://example.org/{self.number:07}/{self.inserted:022}"

    def fill(self, count: int) -> int:
        """Stores documents as fast as possible."""
        with self.index.insertion_session(buffer_size=1_000) as session:
            for _ in range(count):
                session.insert(self.next_id(), self.new(), check_duplication=False)
        return count

    def prepare_checks(self, texts: list[bytes]) -> int:
        self.checked = [self.sign(text) for text in texts]
        return len(texts)

    def prepare_inserts(self, count: int) -> int:
        self.ready += [self.new() for _ in range(count - len(self.ready))]
        return count

    def check(self, begin: float, seconds: float) -> float:
        """Returns the checks per second."""
        time.sleep(max(begin - time.monotonic(), 0))
        done, begun = 0, time.monotonic()
        while time.monotonic() < begun + seconds:
            self.index.query(self.checked[done % len(self.checked)])
            done += 1
        return done / (time.monotonic() - begun)

    def insert(self, begin: float, seconds: float) -> float:
        """Checks each document, and inserts it if it resembles nothing. Returns the documents per second."""
        time.sleep(max(begin - time.monotonic(), 0))
        done, begun = 0, time.monotonic()
        while time.monotonic() < begun + seconds and self.ready:
            signature = self.ready.pop()
            if not self.index.query(signature):
                self.index.insert(self.next_id(), signature)
            done += 1
        return done / (time.monotonic() - begun)


def serve(connection: Connection, *what: object) -> None:
    client = Client(*what)
    while (call := connection.recv()) is not None:
        name, arguments = call
        connection.send(getattr(client, name)(*arguments))


class Sketches:
    """The processes. Those that are not used in a measurement wait."""

    def __init__(self, port: int, pieces: list[bytes]) -> None:
        self.processes, self.connections = [], []
        for number in range(CLIENTS_MAX):
            ours, theirs = multiprocessing.Pipe()
            process = multiprocessing.Process(target=serve, args=(theirs, number, port, pieces), daemon=True)
            process.start()
            self.processes.append(process)
            self.connections.append(ours)

    def each(self, clients: int, name: str, *arguments: object) -> float:
        """Lets some processes do the same, and returns the sum of their results."""
        for connection in self.connections[:clients]:
            connection.send((name, arguments))
        return sum(connection.recv() for connection in self.connections[:clients])

    def fill(self, documents: int, texts: list[bytes]) -> None:
        self.each(CLIENTS_MAX, "fill", documents // CLIENTS_MAX)
        self.each(CLIENTS_MAX, "prepare_checks", texts)

    def check(self, clients: int, seconds: float) -> float:
        return self.each(clients, "check", time.monotonic() + 0.1, seconds)

    def insert(self, clients: int, seconds: float) -> float:
        self.each(clients, "prepare_inserts", int(READY_PER_SECOND * seconds / clients))
        return self.each(clients, "insert", time.monotonic() + 0.1, seconds)

    def stop(self) -> None:
        for connection, process in zip(self.connections, self.processes, strict=True):
            connection.send(None)
            process.join(60)
