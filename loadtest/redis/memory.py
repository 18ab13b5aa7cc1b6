"""How much memory a document takes on the primaries, for several settings of the collection and of the nodes."""

import argparse
import sys
import time
from dataclasses import dataclass

from nodes import Cluster
from report import Bar, bars, table
from server import Hapax, Texts

# As in src/redis/keys.rs.
GROUP = 48
# The default of Redis and Valkey.
LISTPACK_ENTRIES = 512


@dataclass
class Case:
    sketch: str
    bands: int
    rows: int
    id_bytes: int = 50
    # The number of stored documents, divided by `documents_expected`.
    stored: float = 1
    listpack_entries: int = LISTPACK_ENTRIES
    # The most bytes of a document.
    most: int | None = None


LARGE, SMALL = ("fss256x8", 31, 8), ("fss128x8", 21, 6)
AS_EXPECTED = [Case(*LARGE, most=1_100), Case(*LARGE, id_bytes=120), Case(*SMALL, most=750)]
CASES = [
    *AS_EXPECTED,
    *(Case(*LARGE, stored=stored) for stored in (0.2, 2, 8)),
    *(Case(*LARGE, stored=20, listpack_entries=entries) for entries in (LISTPACK_ENTRIES, 4096)),
]


@dataclass
class Taken:
    bytes: float
    keys: float
    loaded_per_second: float


def measure(options: argparse.Namespace, texts: Texts) -> list[Bar]:
    rows, made = [], []
    for server in filter(None, (options.server, options.valkey)):
        runs = [(case, options.documents) for case in CASES]
        runs += [(case, options.large) for case in AS_EXPECTED] if options.large else []
        for case, documents in runs:
            expected = int(documents / case.stored)
            taken = load(options, texts, server, case, documents)
            name = "Valkey" if "valkey" in server else "Redis"
            row = [
                name,
                f"{case.sketch}, {case.bands}x{case.rows}",
                f"{case.id_bytes}",
                f"{documents:,}",
                f"{expected:,}",
            ]
            row += [f"{documents / groups(expected):.0f}", f"{case.listpack_entries}", f"{taken.bytes:,.0f}"]
            row += [f"{taken.keys:.2f}", f"{taken.loaded_per_second:,.0f}"]
            print("memory: " + ", ".join(row), file=sys.stderr, flush=True)
            rows.append(row)
            if case.most:
                made.append(
                    Bar(
                        f"{name}: bytes a document, {row[1]}, {row[3]} stored",
                        [taken.bytes],
                        most=case.most,
                        form=",.0f",
                    )
                )
    head = ["nodes", "sketch, bands", "bytes of an id", "stored", "`documents_expected`", "postings a group"]
    head += ["`hash-max-listpack-entries`", "bytes a document", "keys a document", "loaded a second"]
    print(f"{table(head, rows, words=2)}\n\n{bars(made)}\n", flush=True)
    return made


def groups(expected: int) -> int:
    """Returns how many groups a band has, as src/redis/keys.rs computes it."""
    return max(expected // GROUP, 1)


def load(options: argparse.Namespace, texts: Texts, server: str, case: Case, documents: int) -> Taken:
    """Stores documents in a cluster of its own. Without replicas, there are no buffers for them."""
    folder = options.work / "memory"
    folder.mkdir(exist_ok=True)
    lines = (f"hash-max-listpack-entries {case.listpack_entries}",)
    cluster = Cluster(folder / "nodes", server, replicas=0, lines=lines)
    try:
        cluster.wait_until_settled()
        empty = cluster.used_memory()
        settings = {
            "redis": {"documents_expected": int(documents / case.stored), "acks": 0},
            "default_collection": {"sketch": case.sketch, "bands": case.bands, "rows": case.rows},
        }
        hapax = Hapax(options.hapax, folder / f"hapax-{time.monotonic_ns()}", cluster, settings)
        try:
            begun = time.monotonic()
            hapax.load(texts, documents, case.id_bytes)
            rate = documents / (time.monotonic() - begun)
        finally:
            # Without its connections, the nodes have only documents.
            hapax.stop()
        cluster.wait_until_settled()
        return Taken((cluster.used_memory() - empty) / documents, cluster.keys() / documents, rate)
    finally:
        cluster.stop()
