"""How long requests take while slots move between primaries, and whether one of them fails."""

import argparse
import statistics
import subprocess
import sys
from contextlib import ExitStack

from nodes import Cluster
from report import Bar, bars, median_and_spread, table
from server import Hapax, Load, Texts, start

CONNECTIONS = 16
SLOTS = 4000
# A claim of the documentation: the 99th percentile is at most so many times as long.
SLOWER = 3
KINDS = ("checks", "inserts")


def measure(options: argparse.Namespace, texts: Texts) -> list[Bar]:
    with ExitStack() as stack:
        nodes, hapax = start(stack, options, options.work / "moving", options.documents)
        hapax.load(texts, options.documents)
        rests: dict[str, list[Load]] = {kind: [] for kind in KINDS}
        moves: dict[str, list[Load]] = {kind: [] for kind in KINDS}
        for number in range(options.rounds):
            for kind in KINDS:
                nodes.wait_until_settled()
                rests[kind].append(send(hapax, texts, kind, options.seconds))
                moves[kind] += while_moving(nodes, hapax, texts, kind, options.seconds, back=kind == "inserts")
                print(f"round {number + 1}, {kind}: {rests[kind][-1]}, moving: {moves[kind][-1]}", file=sys.stderr)
    return results(rests, moves)


def send(hapax: Hapax, texts: Texts, kind: str, seconds: int) -> Load:
    if kind == "inserts":
        return hapax.insert(texts, CONNECTIONS, seconds)
    return hapax.send(texts.to_check, CONNECTIONS, seconds)


def while_moving(nodes: Cluster, hapax: Hapax, texts: Texts, kind: str, seconds: int, back: bool) -> list[Load]:
    """Sends requests while slots move from the first primary to the second, or back."""
    address = nodes.addresses[0]
    ids = [node.execute_command("CLUSTER MYID").decode() for node in nodes.primaries[:2]]
    source, target = reversed(ids) if back else ids
    command = ["redis-cli", "--cluster", "reshard", address, "--cluster-from", source, "--cluster-to", target]
    command += ["--cluster-slots", str(SLOTS), "--cluster-yes"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    loads = []
    # The last one may have ended after the move.
    while process.poll() is None or not loads:
        loads.append(send(hapax, texts, kind, seconds))
    if process.returncode:
        sys.exit(f"redis-cli --cluster reshard ended with {process.returncode}")
    return loads[:-1] or loads


def results(rests: dict[str, list[Load]], moves: dict[str, list[Load]]) -> list[Bar]:
    rows = []
    for kind in KINDS:
        for name, loads in ((kind, rests[kind]), (f"{kind}, while slots move", moves[kind])):
            rates = median_and_spread([load.rate for load in loads])
            rows.append(
                [name, rates, *(median_and_spread([load.ms[part] for load in loads], ".2f") for part in (50, 99))]
            )
    failed = [load.failed for kind in KINDS for load in moves[kind]]
    good = sum(load.good for kind in KINDS for load in moves[kind])
    made = [Bar("failed requests while slots move", [sum(failed)], most=0, form=".0f")]
    for kind in KINDS:
        rest = statistics.median(load.ms[99] for load in rests[kind])
        made.append(
            Bar(
                f"99th percentile of {kind} while slots move", [load.ms[99] / rest for load in moves[kind]], most=SLOWER
            )
        )
    print(table([f"{CONNECTIONS} connections", "a second", "median, ms", "99th percentile, ms"], rows))
    print(f"\nWhile slots moved, {good:,} requests got good answers.\n\n{bars(made)}\n", flush=True)
    return made
