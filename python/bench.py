"""Measures speed and memory of pyhapax, as ratios within one run to rensa, datasketch, the core in Rust and processes.

make bench-python builds the wheel and runs this with `python -P`, because a slower build for development may be in
the folder of this file. Rates are documents a second. Libraries take turns, and a ratio is that of two neighbours
in time, so that a busy machine slows both.
"""

from __future__ import annotations

import argparse
import atexit
import functools
import json
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import time
from importlib.metadata import version

# Before rensa is imported.
os.environ["RAYON_NUM_THREADS"] = "1"

WORDS = 5
K_OTHERS = 128


def corpus(count, seed=1, length=2500):
    """Texts of about 2.5 KB; a tenth of them nearly copies."""
    generator = random.Random(seed)
    vocabulary = ["".join(generator.choices("etaoinshrdlucmfwyp", k=generator.randint(2, 9))) for _ in range(20_000)]
    texts = []
    for _ in range(count):
        if texts and generator.random() < 0.1:
            words = generator.choice(texts).split()
            for _ in range(4):
                words[generator.randrange(len(words))] = generator.choice(vocabulary)
        else:
            words = generator.choices(vocabulary, k=length // 6)
        texts.append(" ".join(words))
    return texts


def shingles(text):
    words = text.lower().split()
    return [" ".join(words[i : i + WORDS]) for i in range(len(words) - WORDS + 1)]


def rate(count, work):
    begun = time.perf_counter()
    work()
    return count / (time.perf_counter() - begun)


def take_turns(title, rows, passes):
    """Prints the median rate of each row, and the median ratio of the first row to it.

    A row is a name and a function that returns a rate. The rows take turns, and a ratio is that of two neighbours in
    time: the speed of a shared machine changes within a second.
    """
    rates = {name: [] for name, _ in rows}
    for _ in range(passes):
        for name, measured in rows:
            rates[name].append(measured())
    (base, first), *_ = rates.items()
    print(f"\n| {title} | a second | {base} is |\n|---|--:|--:|")
    for name, of in rates.items():
        ratios = sorted(a / b for a, b in zip(first, of, strict=True))
        spread = f"{ratios[len(ratios) // 4]:.2f} to {ratios[-1 - len(ratios) // 4]:.2f}"
        is_first = name == base
        told = "" if is_first else f"{statistics.median(ratios):.2f} × as fast ({spread})"
        print(f"| {name} | {statistics.median(of):,.0f} | {told} |")


def timed(rows):
    """Returns rows of rates for rows of a number of documents and the work on them."""
    return [(name, functools.partial(rate, count, work)) for name, count, work in rows]


def signing_rows(texts, core):
    import pyarrow as pa
    from datasketch import MinHash
    from rensa import RMinHash

    import pyhapax

    column, signer = pa.array(texts), pyhapax.Signer()
    few, fewer = texts[: len(texts) // 5], texts[: len(texts) // 20]
    ready = [shingles(text) for text in few]
    in_rust = [("the core in Rust, k=256", functools.partial(core_rate, core, texts))] if core else []
    return (
        timed(
            [
                ("pyhapax, k=256, list[str]", len(texts), lambda: signer.sign_batch(texts, threads=1)),
                ("pyhapax, k=256, Arrow", len(texts), lambda: signer.sign_batch(column, threads=1)),
                (
                    "rensa, k=128, from text",
                    len(few),
                    lambda: RMinHash.digest_matrix_from_token_sets([shingles(text) for text in few], K_OTHERS, 42),
                ),
                (
                    "rensa, k=128, of ready shingles",
                    len(few),
                    lambda: RMinHash.digest_matrix_from_token_sets(ready, K_OTHERS, 42),
                ),
                (
                    "datasketch, k=128, from text",
                    len(fewer),
                    lambda: MinHash.bulk([[s.encode() for s in shingles(text)] for text in fewer], num_perm=K_OTHERS),
                ),
            ]
        )
        + in_rust
    )


def index_rows(texts):
    from datasketch import MinHash, MinHashLSH
    from rensa import RMinHash, RMinHashDeduplicator

    import pyhapax

    few, fewer = texts[: len(texts) // 5], texts[: len(texts) // 20]

    def ours():
        index = pyhapax.Index(sketch="fss128x8", bands=21, rows=6)
        for number, text in enumerate(texts):
            index.insert(str(number), text)

    def ours_batch():
        pyhapax.Index(sketch="fss128x8", bands=21, rows=6).deduplicate(texts, threads=1)

    def rensas():
        deduplicator = RMinHashDeduplicator(threshold=0.8, num_perm=K_OTHERS, use_lsh=True, num_bands=16)
        for number, text in enumerate(few):
            minhash = RMinHash(num_perm=K_OTHERS, seed=42)
            minhash.update(shingles(text))
            deduplicator.add(str(number), minhash)

    def datasketchs():
        lsh = MinHashLSH(num_perm=K_OTHERS, params=(21, 6))
        for number, text in enumerate(fewer):
            minhash = MinHash(num_perm=K_OTHERS)
            minhash.update_batch([s.encode() for s in shingles(text)])
            if not lsh.query(minhash):
                lsh.insert(str(number), minhash)

    return timed(
        [
            ("pyhapax, Index.insert", len(texts), ours),
            ("pyhapax, Index.deduplicate", len(texts), ours_batch),
            ("rensa, RMinHashDeduplicator.add", len(few), rensas),
            ("datasketch, MinHashLSH.query and insert", len(fewer), datasketchs),
        ]
    )


def sign_in_process(seed, count, turns):
    """A process that signs when it is told to, and says how long it took."""
    import pyhapax

    texts, signer = corpus(count, seed), pyhapax.Signer()
    signer.sign_batch(texts, threads=1)
    turns.send(None)
    while turns.recv():
        signer.sign_batch(texts, threads=1)
        turns.send(None)


def scaling_rows(count):
    """Two threads, next to two processes that share nothing."""
    import pyhapax

    texts, signer = corpus(count), pyhapax.Signer()
    signer.sign_batch(texts, threads=2)
    spawn, ends = multiprocessing.get_context("spawn"), []
    for seed in [1, 2]:
        mine, theirs = spawn.Pipe()
        spawn.Process(target=sign_in_process, args=(seed, count // 2, theirs), daemon=True).start()
        ends.append(mine)

    def processes():
        for end in ends:
            end.send(True)
        for end in ends:
            end.recv()

    for end in ends:
        end.recv()
    # At the end they are told to end, too.
    atexit.register(lambda: [end.send(False) for end in ends])
    return timed(
        [
            ("two threads", count, lambda: signer.sign_batch(texts, threads=2)),
            ("two processes", count, processes),
        ]
    )


MEMORY = """
import gc, sys
import psutil
kind, count = sys.argv[1], int(sys.argv[2])
K, seed = 128, 0
def words(n):
    return [f"{n} {i}" for i in range(40)]
if kind == "pyhapax":
    import pyhapax
    index = pyhapax.Index(sketch="fss128x8", bands=21, rows=6)
    insert = lambda n: index.insert(str(n), " ".join(words(n)))
elif kind == "rensa":
    from rensa import RMinHash, RMinHashDeduplicator
    deduplicator = RMinHashDeduplicator(threshold=0.8, num_perm=K, use_lsh=True, num_bands=16)
    def insert(n):
        minhash = RMinHash(num_perm=K, seed=42)
        minhash.update(words(n))
        deduplicator.add(str(n), minhash)
else:
    from datasketch import MinHash, MinHashLSH
    lsh = MinHashLSH(num_perm=K, params=(21, 6))
    def insert(n):
        minhash = MinHash(num_perm=K)
        minhash.update_batch([w.encode() for w in words(n)])
        lsh.insert(str(n), minhash)
for n in range(1000):
    insert(-n - 1)
gc.collect()
before = psutil.Process().memory_info().rss
for n in range(count):
    insert(n)
gc.collect()
print((psutil.Process().memory_info().rss - before) / count)
"""


def memory(kind, count):
    run = [sys.executable, "-c", MEMORY, kind, str(count)]
    return float(subprocess.run(run, capture_output=True, text=True, check=True).stdout)


def core_rate(binary, texts):
    """Runs the core in Rust on the same texts; see crates/hapax-core/examples/rate.rs."""
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    return float(subprocess.run([binary], input=lines, capture_output=True, text=True, check=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=4000)
    parser.add_argument("--passes", type=int, default=15)
    parser.add_argument("--core", help="the example `rate` of hapax-core, built with the release profile")
    options = parser.parse_args()
    texts = corpus(options.documents)
    names = ["pyhapax", "rensa", "datasketch", "numpy"]
    print(", ".join(f"{name} {version(name)}" for name in names) + f", Python {sys.version.split()[0]}")
    print(f"{len(texts)} texts of {statistics.mean(map(len, texts)):.0f} bytes, medians of {options.passes} passes")
    take_turns("signing, one thread", signing_rows(texts, options.core), options.passes)
    take_turns("index from text, one thread", index_rows(texts), options.passes)
    take_turns("list[str] on two processors", scaling_rows(2 * options.documents), 3 * options.passes)
    print("\n| memory of an index, k=128 | bytes a document |\n|---|--:|")
    for kind, count in [("pyhapax", 300_000), ("rensa", 50_000), ("datasketch", 20_000)]:
        print(f"| {kind} | {memory(kind, count):,.0f} |")


if __name__ == "__main__":
    main()
