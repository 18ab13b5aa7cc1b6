"""Deduplicates a file as the documentation of datasketch shows it: a document is kept if a MinHashLSH finds no kept
document, and the findings are not verified.

Usage: with_datasketch.py INPUT OUTPUT WORDS WORKERS
"""

import json
import re
import sys
from concurrent.futures import ProcessPoolExecutor

from datasketch import MinHash, MinHashLSH

THRESHOLD = 0.8
SLOTS = 128
TOKEN = re.compile(r"\w+")


def signed(line, words):
    document = json.loads(line)
    tokens = TOKEN.findall(document["text"].lower())
    shingles = {" ".join(tokens[at : at + words]) for at in range(max(len(tokens) - words + 1, 1))}
    minhash = MinHash(num_perm=SLOTS)
    minhash.update_batch([shingle.encode() for shingle in shingles])
    return document["id"], minhash.hashvalues


def signed_lines(lines, words):
    return [signed(line, words) for line in lines]


def main():
    path, out, words, workers = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    with open(path, "rb") as file:
        lines = file.readlines()
    index = MinHashLSH(threshold=THRESHOLD, num_perm=SLOTS)
    chunks = [lines[at : at + 500] for at in range(0, len(lines), 500)]
    with ProcessPoolExecutor(workers) as pool, open(out, "wb") as file:
        for chunk, results in zip(chunks, pool.map(signed_lines, chunks, [words] * len(chunks))):
            for line, (id, values) in zip(chunk, results):
                minhash = MinHash(num_perm=SLOTS, hashvalues=values)
                if not index.query(minhash):
                    index.insert(id, minhash, check_duplication=False)
                    file.write(line)


if __name__ == "__main__":
    main()
