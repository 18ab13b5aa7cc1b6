"""Compares `hapax load` of precomputed signatures with `hapax import` of the same texts, as ratios within one run.

Both run against a fresh server on the same processors, by turns, until the server answers about the last document. Run it
with `make bench-load`, which installs pyhapax and pyarrow.
"""

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyhapax

CHUNK = 100_000


def texts(count, seed):
    """Yields texts of about 2.5 KB of words with the lengths and frequencies of English."""
    chance = random.Random(seed)
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(20_000)]
    weights = [1 / (rank + 10) for rank in range(len(words))]
    for _ in range(count):
        yield " ".join(chance.choices(words, weights, k=380))


def write_texts(folder, count):
    signer = pyhapax.Signer()
    writer = None
    with open(folder / "texts.jsonl", "w", encoding="utf-8") as lines:
        source = texts(count, 1)
        for first in range(0, count, CHUNK):
            some = [text for _, text in zip(range(CHUNK), source)]
            ids = [f"https://example.org/{first + row}" for row in range(len(some))]
            for id_, text in zip(ids, some):
                lines.write(json.dumps({"id": id_, "text": text}) + "\n")
            table = pa.table(signer.sign_batch(some)).append_column("id", pa.array(ids))
            writer = writer or pq.ParquetWriter(folder / "signatures.parquet", table.schema)
            writer.write_table(table)
    writer.close()


def write_random(folder, count):
    """Writes signatures that no text has: only their number matters."""
    chance = np.random.default_rng(1)
    schema = pa.table(pyhapax.Signer().sign_batch(["a"])).schema.append(pa.field("id", pa.string()))
    with pq.ParquetWriter(folder / "signatures.parquet", schema, compression="none") as writer:
        for first in range(0, count, CHUNK):
            rows = min(CHUNK, count - first)
            fixed = lambda width: pa.FixedSizeBinaryArray.from_buffers(  # noqa: E731
                pa.binary(width), rows, [None, pa.py_buffer(chance.bytes(rows * width))]
            )
            shingles = pa.array(np.full(rows, 380, dtype=np.uint64))
            ids = pa.array([f"https://example.org/{first + row}" for row in range(rows)])
            writer.write_batch(pa.record_batch([fixed(256), fixed(16), shingles, ids], schema=schema))


class Server:
    def __init__(self, binary, folder, arguments=()):
        self.process = subprocess.Popen(
            [binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", folder, *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.url = self.process.stdout.readline().split("ready on ")[1].split()[0]

    def wait_until_ready(self):
        for _ in range(6_000):
            try:
                with urllib.request.urlopen(f"{self.url}/readyz", timeout=5):
                    return
            except OSError:
                time.sleep(0.1)
        self.end()
        sys.exit("the server was not ready within ten minutes")

    def resident(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) * 1024

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def measured(binary, folder, command):
    """Runs a command against a fresh server. Returns the seconds it took, and the memory of the server."""
    data = folder / "data"
    shutil.rmtree(data, ignore_errors=True)
    server = Server(binary, data)
    begun = time.monotonic()
    done = subprocess.run([binary, *command, "--server", server.url], capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begun
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
    resident = server.resident()
    server.end()
    return seconds, resident


def compare(binary, folder, count, rounds):
    write_texts(folder, count)
    commands = {
        "import": ["import", folder / "texts.jsonl", "--collection", "default"],
        "load": ["load", folder / "signatures.parquet", "--collection", "loaded"],
    }
    taken = {name: [] for name in commands}
    for number in range(rounds):
        for name, command in commands.items():
            seconds, resident = measured(binary, folder, command)
            taken[name].append((count / seconds, resident))
            print(f"round {number + 1}, {name}: {count / seconds:,.0f} documents/s, {resident / 1e6:,.0f} MB", flush=True)
    rates = {name: statistics.median(rate for rate, _ in runs) for name, runs in taken.items()}
    memory = {name: statistics.median(resident for _, resident in runs) for name, runs in taken.items()}
    ratio, more = rates["load"] / rates["import"], memory["load"] / memory["import"]
    print(f"| documents | import/s | load/s | load : import | memory, load : import |\n|--:|--:|--:|--:|--:|")
    print(f"| {count:,} | {rates['import']:,.0f} | {rates['load']:,.0f} | {ratio:.1f} | {more:.2f} |")


def report(binary, folder, count):
    """Measures a large load by its parts: into a directory, and the start of a server on it."""
    write_random(folder, count)
    # So that this file is not written to the disk during the measurement.
    os.sync()
    data = folder / "data"
    begun = time.monotonic()
    command = [binary, "load", folder / "signatures.parquet", "--collection", "loaded", "--data-dir", data]
    subprocess.run(command, check=True)
    loaded = time.monotonic() - begun
    size = sum(file.stat().st_size for file in data.rglob("*"))
    begun = time.monotonic()
    server = Server(binary, data)
    server.wait_until_ready()
    opened = time.monotonic() - begun
    resident = server.resident()
    server.end()
    print("| documents | rows/s | opened/s | file, bytes/document | memory, bytes/document |\n|--:|--:|--:|--:|--:|")
    print(f"| {count:,} | {count / loaded:,.0f} | {count / opened:,.0f} | {size / count:,.0f} | {resident / count:,.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default="target/release/hapax")
    parser.add_argument("--documents", type=int, default=200_000, help="texts to compare an import with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, help="instead, load this many random signatures, and report the parts")
    options = parser.parse_args()
    binary = os.path.abspath(options.binary)
    with tempfile.TemporaryDirectory(prefix="hapax-load-", dir=os.environ.get("HAPAX_BENCH_DIR")) as folder:
        if options.rows:
            report(binary, Path(folder), options.rows)
        else:
            compare(binary, Path(folder), options.documents, options.rounds)


main()
