"""Recall, precision and speed of pyhapax, datasketch and rensa on real texts.

The texts are not part of the project. They are in the folder of --corpora, with all pairs of documents whose similarity
is at least 0.5, computed exactly. `make bench-recall` builds the wheel and runs this with `python -P`, because a slower
build for development may be in the folder of this file.

Each document is cut into shingles, signed, looked up and stored, all on one thread. Recall is the share of the true
pairs that are found when the later document is looked up. Precision is the share of the found pairs whose similarity is
at least the threshold. The libraries take turns, and a rate is the median of the passes. Seconds are those of the
processor, of all threads together, so that other programs take little part in them.

RMinHashDeduplicator stores no duplicates, so most pairs never meet in it. After the timed pass, it is asked about each
pair separately, with the first document as its only content. These are the pairs from 0.5: estimates of others do not
reach the threshold.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Before rensa is imported.
os.environ["RAYON_NUM_THREADS"] = "1"

import datasketch
import pyarrow as pa
import rensa

import pyhapax
import pyhapax.compat

THRESHOLD = 0.8
K_OTHERS = 128
SEED = 42
LEVELS = [0.8, 0.85, 0.9]
# Of pyhapax.
LIMIT_MAX = 1000
# Texts, the file of their pairs, and the shingles of both.
CORPORA = [
    ("licences", "licences", "w3"),
    ("boost", "boost_html_2_versions.text", "w3"),
    ("django", "django_docs_5_versions", "w3"),
    ("poems", "chinese_poems", "c3"),
]
WORD = re.compile(r"[^\W_]+")

# Rows of two documents, the earlier one first.
Pair = tuple[int, int]
# The seconds that a pass took, and a function that returns the pairs that it found.
Pass = tuple[float, Callable[[], set[Pair]]]


@dataclass(frozen=True)
class Corpus:
    name: str
    mode: str
    texts: list[str]
    similarities: dict[Pair, float]

    @property
    def shingle(self) -> str:
        """The shingles of the truth, in the words of pyhapax."""
        return {"w": "word", "c": "char"}[self.mode[0]] + self.mode[1:]

    def cut(self, text: str) -> list[str]:
        """Cuts a text into the shingles of the truth, for the libraries that take no text."""
        width = int(self.mode[1:])
        if self.mode[0] == "w":
            tokens = WORD.findall(text.lower())
            return [" ".join(tokens[i : i + width]) for i in range(max(len(tokens) - width + 1, 1))]
        text = " ".join(text.lower().split())
        return [text[i : i + width] for i in range(max(len(text) - width + 1, 1))]

    def told(self) -> str:
        counts = [sum(similarity >= level for similarity in self.similarities.values()) for level in [*LEVELS, 1]]
        size = statistics.mean(len(text.encode()) for text in self.texts)
        return (
            f"{self.name}: {len(self.texts):,} documents of {size:,.0f} bytes, {self.shingle}; "
            + ", ".join(f"{count:,} pairs from {level}" for level, count in zip(LEVELS, counts, strict=False))
            + f", {counts[-1]:,} of them equal"
        )


def read(path: Path) -> list[str]:
    with pa.input_stream(str(path), compression="zstd") as stream:
        return stream.read().decode().removesuffix("\n").split("\n")


def corpus(folder: Path, name: str, file: str, mode: str, documents_max: int) -> Corpus:
    documents = [json.loads(line) for line in read(folder / f"{file}.jsonl.zst")]
    if len(documents) > documents_max:
        chosen = sorted(random.Random(SEED).sample(range(len(documents)), documents_max))
        documents = [documents[row] for row in chosen]
    rows = {document["id"]: row for row, document in enumerate(documents)}
    similarities = {}
    for line in read(folder / f"{file}.{mode}.j50.tsv.zst"):
        a, b, similarity = line.split("\t")
        if a in rows and b in rows:
            first, second = sorted((rows[a], rows[b]))
            similarities[first, second] = float(similarity)
    return Corpus(name, mode, [document["text"] for document in documents], similarities)


def paired(found: Iterable[Iterable[int]]) -> set[Pair]:
    """Returns the pairs of the earlier documents that were found for each document."""
    return {(earlier, row) for row, earlier_rows in enumerate(found) for earlier in earlier_rows}


def index(sketch: str) -> Callable[[Corpus], Pass]:
    def run(corpus: Corpus) -> Pass:
        documents = pyhapax.Index(threshold=THRESHOLD, shingle=corpus.shingle, sketch=sketch)
        begun = time.process_time()
        found = [
            [int(match.id) for match in documents.insert(str(row), text, on_duplicate="store", limit=LIMIT_MAX).matches]
            for row, text in enumerate(corpus.texts)
        ]
        return time.process_time() - begun, lambda: paired(found)

    return run


def minhash_lsh(library: Any, *, verified: bool) -> Callable[[Corpus], Pass]:
    """datasketch, or pyhapax.compat, which has the same shape."""

    def run(corpus: Corpus) -> Pass:
        lsh = library.MinHashLSH(threshold=THRESHOLD, num_perm=K_OTHERS)
        stored, found = [], []
        begun = time.process_time()
        sets = ([shingle.encode() for shingle in corpus.cut(text)] for text in corpus.texts)
        for row, minhash in enumerate(library.MinHash.generator(sets, num_perm=K_OTHERS)):
            candidates = lsh.query(minhash)
            if verified:
                candidates = [earlier for earlier in candidates if stored[earlier].jaccard(minhash) >= THRESHOLD]
                stored.append(minhash)
            found.append(candidates)
            lsh.insert(row, minhash)
        return time.process_time() - begun, lambda: paired(found)

    return run


def rminhash_lsh(num_bands: int) -> Callable[[Corpus], Pass]:
    def run(corpus: Corpus) -> Pass:
        lsh = rensa.RMinHashLSH(threshold=THRESHOLD, num_perm=K_OTHERS, num_bands=num_bands)
        found = []
        begun = time.process_time()
        for row, text in enumerate(corpus.texts):
            minhash = rensa.RMinHash(num_perm=K_OTHERS, seed=SEED)
            minhash.update(corpus.cut(text))
            found.append(lsh.query(minhash))
            lsh.insert(row, minhash)
        return time.process_time() - begun, lambda: paired(found)

    return run


def rminhash_deduplicator(num_bands: int | None = None) -> Callable[[Corpus], Pass]:
    def made() -> Any:
        return rensa.RMinHashDeduplicator(
            threshold=THRESHOLD, num_perm=K_OTHERS, use_lsh=True, num_bands=num_bands, seed=SEED
        )

    def asked(corpus: Corpus) -> set[Pair]:
        minhashes = rensa.RMinHash.from_token_sets([corpus.cut(text) for text in corpus.texts], K_OTHERS, SEED)
        partners: dict[int, list[int]] = {}
        for first, second in corpus.similarities:
            partners.setdefault(first, []).append(second)
        deduplicator, found = made(), set()
        for first, seconds in partners.items():
            deduplicator.add("first", minhashes[first])
            found |= {(first, second) for second in seconds if deduplicator.is_duplicate("second", minhashes[second])}
            deduplicator.remove("first")
        return found

    def run(corpus: Corpus) -> Pass:
        deduplicator = made()
        begun = time.process_time()
        deduplicator.add_pairs((str(row), corpus.cut(text)) for row, text in enumerate(corpus.texts))
        return time.process_time() - begun, lambda: asked(corpus)

    return run


LIBRARIES = {
    "pyhapax `Index`": index("fss256x8"),
    "pyhapax `Index`, k=128": index("fss128x8"),
    "`pyhapax.compat.MinHashLSH`": minhash_lsh(pyhapax.compat, verified=False),
    "datasketch `MinHashLSH`": minhash_lsh(datasketch, verified=False),
    "datasketch `MinHashLSH`, then `jaccard`": minhash_lsh(datasketch, verified=True),
    "rensa `RMinHashDeduplicator`": rminhash_deduplicator(),
    "rensa `RMinHashDeduplicator`, 16 bands": rminhash_deduplicator(16),
    "rensa `RMinHashLSH`, 8 bands": rminhash_lsh(8),
}


def figures(similarities: dict[Pair, float], found: set[Pair]) -> list[str]:
    """Returns the recall at each level, and the precision."""

    def share(part: int, whole: int) -> str:
        return f"{part / whole:.3f}" if whole else ""

    recalls = []
    for level in LEVELS:
        true = {pair for pair, similarity in similarities.items() if similarity >= level}
        recalls.append(share(len(true & found), len(true)))
    right = sum(similarities.get(pair, 0) >= THRESHOLD for pair in found)
    return [*recalls, share(right, len(found))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    beside = Path(__file__).resolve().parents[2] / "shared/given"
    parser.add_argument(
        "--corpora",
        type=Path,
        default=Path(os.environ.get("HAPAX_CORPORA", beside)),
        help="the folder of the texts; by default HAPAX_CORPORA, or ../shared/given beside this checkout",
    )
    parser.add_argument(
        "--documents", type=int, default=20_000, help="take a sample of so many documents of larger corpora"
    )
    parser.add_argument("--passes", type=int, default=3)
    options = parser.parse_args()
    if not options.corpora.is_dir():
        sys.exit(f"{options.corpora} is not a folder; set HAPAX_CORPORA to the folder of the corpora")

    corpora = [corpus(options.corpora, *names, options.documents) for names in CORPORA]
    versions = [f"{name} {version(name)}" for name in ["pyhapax", "datasketch", "rensa", "numpy"]]
    print(", ".join(versions) + f", Python {platform.python_version()}")
    print(f"threshold {THRESHOLD}, medians of {options.passes} passes\n")
    for each in corpora:
        print(f"- {each.told()}")
    levels = " | ".join(f"J ≥ {level}" for level in LEVELS)
    print(f"\n| corpus | | {levels} | precision | documents a second |")
    print(f"|---|---|{'--:|' * (len(LEVELS) + 2)}", flush=True)
    spread = 1.0
    for each in corpora:
        rates: dict[str, list[float]] = {name: [] for name in LIBRARIES}
        told = {}
        for number in range(options.passes):
            for name, run in LIBRARIES.items():
                seconds, pairs = run(each)
                rates[name].append(len(each.texts) / seconds)
                if number == 0:
                    told[name] = figures(each.similarities, pairs())
        for name, measured in rates.items():
            rate = f"{statistics.median(measured):,.0f}"
            print(f"| {each.name} | {name} | {' | '.join(told[name])} | {rate} |", flush=True)
            spread = max(spread, max(measured) / min(measured))
    print(f"\nThe fastest pass was at most {spread:.2f} × as fast as the slowest.")


if __name__ == "__main__":
    main()
