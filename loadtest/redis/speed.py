"""Inserts and checks a second: a hapax in front of three primaries and three replicas, and datasketch on one Redis."""

import argparse
import statistics
import sys
import time
from contextlib import ExitStack

import redis

from nodes import Nodes, Single
from report import Bar, bars, median_and_spread, table
from server import BULK_LINES_MAX, Load, Texts, start
from sketches import CHECKED, Sketches

# The numbers of client processes of datasketch. The best one counts.
CLIENTS = (1, 2, 4, 8)
CONNECTIONS = 64
INSERTS, CHECKS = "inserts, 64 clients", "checks, 64 clients"
ONE_INSERT, ONE_CHECK = "inserts, one client", "checks, one client"
BULK = "inserts, one bulk request"
# A claim of the documentation: so many times as fast as datasketch.
TIMES = 8
# With ten times as many documents, at most so many times as slow.
SLOWER = 1.5


class Side:
    """A hapax with a cluster of its own, and its figures."""

    def __init__(self, stack: ExitStack, options: argparse.Namespace, texts: Texts, documents: int) -> None:
        self.texts, self.seconds = texts, options.seconds
        self.name = f"hapax, {documents:,} stored"
        self.nodes, self.hapax = start(stack, options, options.work / f"speed-{documents}", documents)
        self.hapax.load(texts, documents)
        self.rates: dict[str, list[float]] = {}
        self.loads: dict[str, list[Load]] = {}
        # Microseconds of a processor for one document: of hapax, the primaries and the replicas.
        self.costs: dict[str, list[list[float]]] = {}

    def measure(self, row: str) -> float:
        before = self.processor_s()
        load = self.bulk() if row == BULK else self.requests(row)
        cost = [(now - then) / load.good * 1e6 for now, then in zip(self.processor_s(), before, strict=True)]
        self.loads.setdefault(row, []).append(load)
        self.rates.setdefault(row, []).append(load.rate)
        self.costs.setdefault(row, []).append(cost)
        return load.rate

    def requests(self, row: str) -> Load:
        connections = 1 if row in (ONE_INSERT, ONE_CHECK) else CONNECTIONS
        if row in (INSERTS, ONE_INSERT):
            return self.hapax.insert(self.texts, connections, self.seconds)
        return self.hapax.send(self.texts.to_check, connections, self.seconds)

    def bulk(self) -> Load:
        """Sends about as many documents as 64 clients have just inserted."""
        count = min(int(self.rates[INSERTS][-1] * self.seconds), BULK_LINES_MAX)
        lines = self.hapax.lines(self.texts, count)
        begun = time.monotonic()
        self.hapax.bulk(lines)
        return Load(count, count / (time.monotonic() - begun))

    def processor_s(self) -> list[float]:
        primaries, replicas = self.nodes.primaries, self.nodes.all[len(self.nodes.primaries) :]
        return [self.hapax.processor_s(), *(sum(map(node_s, nodes)) for nodes in (primaries, replicas))]

    def latency(self, row: str) -> str:
        loads = self.loads[row]
        medians = [statistics.median(load.ms[percent] for load in loads) for percent in loads[0].ms]
        return ", ".join(f"{median:.2f}" for median in medians)

    def cost(self, row: str) -> str:
        return ", ".join(f"{statistics.median(parts):.0f}" for parts in zip(*self.costs[row], strict=True))


def node_s(node: redis.Redis) -> float:
    """Returns how long a node has used a processor."""
    info = node.info("cpu")
    return info["used_cpu_sys"] + info["used_cpu_user"]


class Rival:
    """datasketch, and its figures for each number of processes."""

    def __init__(self, stack: ExitStack, options: argparse.Namespace, texts: Texts) -> None:
        self.seconds = options.seconds
        self.nodes = Single(options.work / "datasketch", "redis-server")
        stack.callback(self.nodes.stop)
        self.sketches = Sketches(self.nodes.ports[0], texts.pieces)
        stack.callback(self.sketches.stop)
        self.sketches.fill(options.documents, texts.checks(CHECKED))
        self.rates: dict[str, dict[int, list[float]]] = {INSERTS: {}, CHECKS: {}}

    def measure(self, row: str, clients: int) -> float:
        run = self.sketches.insert if row == INSERTS else self.sketches.check
        rate = run(clients, self.seconds)
        self.rates[row].setdefault(clients, []).append(rate)
        return rate

    def best(self, row: str) -> tuple[int, list[float]]:
        """Returns the number of processes with the highest median, and their rates in each round."""
        return max(self.rates[row].items(), key=lambda found: statistics.median(found[1]))


def measure(options: argparse.Namespace, texts: Texts) -> list[Bar]:
    with ExitStack() as stack:
        sizes = [options.documents, *([options.large] if options.large else [])]
        sides = []
        for documents in sizes:
            print(f"storing {documents:,} documents in hapax", file=sys.stderr, flush=True)
            sides.append(Side(stack, options, texts, documents))
        print(f"storing {options.documents:,} documents in datasketch", file=sys.stderr, flush=True)
        rival = Rival(stack, options, texts)
        for number in range(options.rounds):
            one_round(number, sides, rival)
        print(results(sides, rival))
        made = verdicts(sides, rival)
        print(f"\n{bars(made)}\n", flush=True)
        return made


def one_round(number: int, sides: list[Side], rival: Rival) -> None:
    # So that no side always comes first.
    turn = sides if number % 2 == 0 else sides[::-1]
    settled: list[Nodes] = [*(side.nodes for side in sides), rival.nodes]
    for row in (INSERTS, BULK, CHECKS, ONE_INSERT, ONE_CHECK):
        rates = []
        for side in turn:
            wait(settled)
            rates.append(f"{side.name} {side.measure(row):,.0f}")
        for clients in CLIENTS if row in rival.rates else ():
            wait(settled)
            rates.append(f"datasketch with {clients} {rival.measure(row, clients):,.0f}")
        print(f"round {number + 1}, {row}: {'; '.join(rates)}", file=sys.stderr, flush=True)


def wait(settled: list[Nodes]) -> None:
    for nodes in settled:
        nodes.wait_until_settled()


def results(sides: list[Side], rival: Rival) -> str:
    first = sides[0]
    head = ["a second", *(side.name for side in sides), "p50, p99 (ms)"]
    head += ["processor time (µs): hapax, primaries, replicas", "datasketch"]
    rows = []
    for row in (INSERTS, CHECKS, ONE_INSERT, ONE_CHECK, BULK):
        cells = [row, *(median_and_spread(side.rates[row]) for side in sides)]
        cells += [first.latency(row), first.cost(row)]
        shown = ""
        if row in rival.rates:
            clients, rates = rival.best(row)
            shown = f"{median_and_spread(rates)} with {clients} {'process' if clients == 1 else 'processes'}"
        elif row in (ONE_INSERT, ONE_CHECK):
            shown = median_and_spread(rival.rates[INSERTS if row == ONE_INSERT else CHECKS][1])
        rows.append([*cells, shown])
    return table(head, rows)


def ratios(over: list[float], under: list[float]) -> list[float]:
    return [one / other for one, other in zip(over, under, strict=True)]


def verdicts(sides: list[Side], rival: Rival) -> list[Bar]:
    first = sides[0].rates
    made = [
        Bar(f"{row}: hapax over datasketch", ratios(first[row], rival.best(row)[1]), least=TIMES)
        for row in (INSERTS, CHECKS)
    ]
    made.append(Bar("a bulk request over 64 clients", ratios(first[BULK], first[INSERTS]), least=1))
    for side in sides[1:]:
        for row in (INSERTS, CHECKS):
            name = f"{row}: {sides[0].name} over {side.name}"
            made.append(Bar(name, ratios(first[row], side.rates[row]), most=SLOWER))
    return made
