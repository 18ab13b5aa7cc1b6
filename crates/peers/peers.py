"""Times datasketch and rensa for crates/hapax-core/benches/peers.rs.

This program has the same protocol as src/main.rs: it prints rows and notes, and then answers each command with a
number. It uses one thread. A library that cannot be imported is left out, and a note says so.
"""

import os

# This must be set before rensa is imported.
os.environ["RAYON_NUM_THREADS"] = "1"

import statistics
import struct
import sys
import time
from importlib.metadata import version

K = 128
WORDS = 5
MEASURE_FOR_S = 0.1
PASSES_MIN = 3


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    texts, at = [], 0
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        texts.append(data[at + 4 : at + 4 + length].decode())
        at += 4 + length
    return texts


def shingles(text):
    words = text.lower().split()
    return [" ".join(words[i : i + WORDS]) for i in range(len(words) - WORDS + 1)]


def shingles_bytes(text):
    return [shingle.encode() for shingle in shingles(text)]


def datasketch_rows(texts):
    from datasketch import MinHash

    ready = [shingles_bytes(text) for text in texts]
    return {
        "datasketch text": (
            "datasketch 128x32, text",
            lambda: MinHash.bulk([shingles_bytes(text) for text in texts], num_perm=K),
        ),
        "datasketch shingles": ("datasketch 128x32, shingles ready", lambda: MinHash.bulk(ready, num_perm=K)),
    }


def rensa_rows(texts):
    import numpy
    from rensa import RMinHash

    ready = [shingles(text) for text in texts]
    hashed = RMinHash.hash_token_sets(ready)
    flat = numpy.array([h for document in hashed for h in document], dtype=numpy.uint64)
    offsets = numpy.cumsum([0] + [len(document) for document in hashed]).astype(numpy.uint64)
    return {
        "rensa text": (
            "rensa R-MinHash 128x32, text",
            lambda: RMinHash.digest_matrix_from_token_sets([shingles(text) for text in texts], K, 42),
        ),
        "rensa shingles": (
            "rensa R-MinHash 128x32, shingles ready",
            lambda: RMinHash.digest_matrix_from_token_sets(ready, K, 42),
        ),
        "rensa hashes": (
            "rensa R-MinHash 128x32, shingles ready and hashed",
            lambda: RMinHash.digest_matrix_from_flat_token_hashes(flat, offsets, K, 42),
        ),
        "rensa rho": (
            "rensa rho 128 (samples shingles), shingles ready",
            lambda: RMinHash.digest_matrix_from_token_sets_rho(ready, K, 42),
        ),
    }


def median_ns(documents, sign_all):
    passes = []
    start = time.perf_counter()
    while len(passes) < PASSES_MIN or time.perf_counter() - start < MEASURE_FOR_S:
        begun = time.perf_counter_ns()
        sign_all()
        passes.append((time.perf_counter_ns() - begun) / documents)
    return statistics.median(passes)


def say(*fields):
    print(*fields, sep="\t", flush=True)


def main():
    texts = read(sys.argv[1])
    rows = {}
    for package, make in [("datasketch", datasketch_rows), ("rensa", rensa_rows)]:
        try:
            rows |= make(texts)
            say("note", f"{package} {version(package)}, numpy {version('numpy')}, Python {sys.version.split()[0]}")
        except Exception as error:
            say("note", f"LEFT OUT: {package}: {error}")
    for command, (what, _) in rows.items():
        say("row", command, what)
    say("ready")
    for line in sys.stdin:
        say(f"{median_ns(len(texts), rows[line.strip()][1]):.1f}")


main()
