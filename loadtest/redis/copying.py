"""How fast `hapax copy` fills a collection in a cluster, compared with the inserts of 64 clients."""

import argparse
import re
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from nodes import Cluster
from report import Bar, bars, median_and_spread, table
from server import Hapax, Texts, start

CONNECTIONS = 64
# A claim of the documentation: so many times as fast as the inserts.
TIMES = 5
# The data of a dropped collection is removed in this time.
REMOVED_MAX_S = 600


@dataclass
class Copy:
    rate: float
    # The largest memory of the process.
    bytes: int


def measure(options: argparse.Namespace, texts: Texts) -> list[Bar]:
    folder = options.work / "copy"
    folder.mkdir()
    local = Hapax(options.hapax, folder / "local", None, {})
    try:
        local.load(texts, options.documents)
    finally:
        local.stop()
    with ExitStack() as stack:
        nodes, hapax = start(stack, options, folder / "cluster", options.documents)
        hapax.load(texts, options.documents)
        inserts, copies = [], []
        for number in range(options.rounds):
            nodes.wait_until_settled()
            inserts.append(hapax.insert(texts, CONNECTIONS, options.seconds).rate)
            nodes.wait_until_settled()
            before = nodes.keys()
            copies.append(copy(options, local, hapax, f"copy-{number}"))
            print(f"round {number + 1}: inserts {inserts[-1]:,.0f}, copy {copies[-1]}", file=sys.stderr, flush=True)
            drop(nodes, hapax, f"copy-{number}", before)
    return results(inserts, copies)


def copy(options: argparse.Namespace, local: Hapax, hapax: Hapax, name: str) -> Copy:
    """Copies the local collection. Its reading counts, too."""
    command = [options.hapax, "copy", "--from", local.data, "--from-collection", "default"]
    command += ["--to", hapax.config, "--collection", name]
    begun = time.monotonic()
    process, largest = subprocess.Popen(command), 0
    while process.poll() is None:
        largest = memory_bytes(process.pid) or largest
        time.sleep(0.02)
    if process.returncode:
        sys.exit(f"hapax copy ended with {process.returncode}")
    return Copy(options.documents / (time.monotonic() - begun), largest)


def memory_bytes(process: int) -> int:
    """Returns the largest memory of a process until now, or 0 if it has ended."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    return int(found[1]) * 1024 if found else 0


def drop(nodes: Cluster, hapax: Hapax, name: str, before: int) -> None:
    """Drops a collection, and waits until its data is removed."""
    hapax.call("DELETE", f"/v1/collections/{name}?confirm={name}")
    for _ in range(REMOVED_MAX_S):
        if nodes.keys() <= before:
            return
        time.sleep(1)
    sys.exit(f"the data of {name} is not removed")


def results(inserts: list[float], copies: list[Copy]) -> list[Bar]:
    rates = [copy.rate for copy in copies]
    rows = [["inserts, 64 clients", median_and_spread(inserts)], ["hapax copy", median_and_spread(rates)]]
    largest = statistics.median(copy.bytes for copy in copies)
    made = [Bar("a copy over 64 clients", [one / other for one, other in zip(rates, inserts, strict=True)], least=TIMES)]
    print(table(["documents a second", "hapax"], rows))
    print(f"\nThe command took up to {largest / 1e6:,.0f} MB of memory.\n\n{bars(made)}\n", flush=True)
    return made
