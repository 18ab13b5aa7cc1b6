"""How much a key of very many postings slows the checks of other documents.

A document is stored, whose band 0 either is its own or has 200,000 postings of other documents. In both states, other
documents are checked at the same rate, and in half of the measurements the document itself is checked, too.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from nodes import Cluster
from report import Bar, bars, median_and_spread, table
from server import Hapax, Load, Requests, Texts, start

import redis

POSTINGS = 200_000
# Document numbers begin after this one.
NUMBERS = 1_000_000_000
# Commands that are sent to a node together.
PIPELINE = 10_000
# The connections that check other documents and those that check the document with the long key, and the mean of the
# pauses of a connection.
OTHERS, OTHERS_PAUSE_MS = 16, 32
SAME, SAME_PAUSE_MS = 4, 80
# p99 may be so many times as long.
TIMES = 2


class LongKey:
    """The key of band 0 of the only document."""

    def __init__(self, nodes: Cluster) -> None:
        self.nodes = nodes
        found = [(key, at) for at in nodes.primaries for key in at.scan_iter("hapax:*:b0.*", count=PIPELINE)]
        if len(found) != 1:
            sys.exit(f"one document should have one posting in band 0, but there are {found}")
        self.key, self.at = found[0]
        self.collection = self.key.rpartition(b":")[0]
        # Postings that do not fit into the field of a band key are in a sorted set. It may be on another node.
        self.more = self.key + b"+"
        [self.at_more] = [at for at in nodes.primaries if has(at, self.more) is not None]
        [self.field] = self.at.hkeys(self.key)
        self.few: bytes = b""
        self.many: list[bytes] = []
        self.bytes = 0

    def skip_numbers(self) -> range:
        """Reserves document numbers, as a server does that ends before it uses them."""
        counter = self.collection + b":n"
        [at] = [at for at in self.nodes.primaries if has(at, counter)]
        last = NUMBERS + at.incrby(counter, POSTINGS)
        return range(last - POSTINGS + 1, last + 1)

    def stored(self) -> Iterator[bytes]:
        before = self.collection + b":r"
        for at in self.nodes.primaries:
            for key in at.scan_iter(before + b"*", count=PIPELINE):
                yield key.removeprefix(before)

    def choose(self, skipped: range) -> None:
        """Chooses the other documents. All that a check reads are stored: the oldest and the newest."""
        self.few = self.at.hget(self.key, self.field)
        members = set(self.stored()).union(str(number).encode() for number in skipped)
        ordered = sorted(members - set(self.few.split(b",")))
        left_out = len(ordered) - POSTINGS
        middle = (len(ordered) - left_out) // 2
        self.many = ordered[:middle] + ordered[middle + left_out :]

    def make(self, long: bool) -> None:
        self.at.hset(self.key, self.field, b"+" + self.few if long else self.few)
        self.at_more.unlink(self.more)
        for first in range(0, len(self.many) if long else 0, PIPELINE):
            some = self.many[first : first + PIPELINE]
            self.at_more.zadd(self.more, dict.fromkeys(some, int(self.field)))
        if long and not self.bytes:
            self.bytes = self.at_more.memory_usage(self.more, samples=0)
        self.nodes.wait_until_settled()


def has(at: redis.Redis, key: bytes) -> bool | None:
    """Returns whether a key exists. None: another node has its slot."""
    try:
        return bool(at.exists(key))
    except redis.exceptions.MovedError:
        return None


def measure(options: argparse.Namespace, texts: Texts) -> list[Bar]:
    folder = options.work / "bounds"
    with ExitStack() as stack:
        nodes, hapax = start(stack, options, folder, options.documents)
        [line] = hapax.lines(texts, 1)
        hapax.bulk([line])
        key = LongKey(nodes)
        hapax.load(texts, options.documents // 2)
        skipped = key.skip_numbers()
        hapax.load(texts, options.documents // 2)
        key.choose(skipped)
        text = json.loads(line)["text"]
        same = Requests.of_text(text, folder / "same")
        p99: dict[tuple[bool, bool], list[Load]] = {}
        for number in range(options.rounds):
            for long in (False, True) if number % 2 == 0 else (True, False):
                key.make(long)
                complete = hapax.check(text)["complete"]
                if complete is long:
                    sys.exit(f"the document was checked, and complete is {complete}")
                for asked in (False, True):
                    load = one(hapax, texts, same if asked else None, options.seconds)
                    p99.setdefault((long, asked), []).append(load)
                    print(f"round {number + 1}, long {long}, asked {asked}: {load}", file=sys.stderr, flush=True)
        print(f"The long key has {key.bytes / POSTINGS:.0f} bytes a posting.\n")
        return results(p99)


def one(hapax: Hapax, texts: Texts, same: Requests | None, seconds: float) -> Load:
    """Checks other documents, and at the same time the one with the long key."""
    with ThreadPoolExecutor(2) as pool:
        others = pool.submit(hapax.send, texts.to_check, OTHERS, seconds, OTHERS_PAUSE_MS)
        if same:
            pool.submit(hapax.send, same, SAME, seconds, SAME_PAUSE_MS).result()
        return others.result()


def results(p99: dict[tuple[bool, bool], list[Load]]) -> list[Bar]:
    rows, made = [], []
    for (long, asked), loads in sorted(p99.items()):
        what = f"{POSTINGS:,} postings" if long else "a few postings"
        of = "of others and of the document" if asked else "of others"
        times = [median_and_spread([load.ms[percent] for load in loads], ".2f") for percent in (50, 99)]
        rows.append([what, of, median_and_spread([load.rate for load in loads]), *times])
    for asked, what in ((False, "only others are checked"), (True, "the document is checked, too")):
        pairs = zip(p99[True, asked], p99[False, asked], strict=True)
        ratios = [long.ms[99] / short.ms[99] for long, short in pairs]
        made.append(Bar(f"p99 of checks with a long key, {what}", ratios, most=TIMES))
    head = ["the key has", "checks", "checks of others a second", "p50 (ms)", "p99 (ms)"]
    print(f"{table(head, rows, words=2)}\n\n{bars(made)}\n", flush=True)
    return made
