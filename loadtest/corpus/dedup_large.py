"""Deduplicates many short generated documents with `hapax dedup --memory`, and prints the speed, the memory and the size of
the temporary files. With --compare, it also runs without --memory, and compares the outputs byte for byte.

Run it with `make bench-dedup-large`.
"""

import argparse
import filecmp
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PHRASES, PHRASES_IN_TEXT = 500_000, 11


def generate(path, count):
    """Writes documents of about 470 bytes. A fifth of them repeat an earlier one, of which none to two phrases differ."""
    chance = random.Random(1)
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 10))) for _ in range(30_000)]
    phrases = [" ".join(chance.choices(words, k=6)) for _ in range(PHRASES)]
    earlier = []
    with path.open("w", encoding="utf-8") as lines:
        for number in range(count):
            if earlier and chance.random() < 0.2:
                text = list(chance.choice(earlier))
                for _ in range(chance.randrange(3)):
                    text[chance.randrange(PHRASES_IN_TEXT)] = chance.choice(phrases)
            else:
                text = chance.choices(phrases, k=PHRASES_IN_TEXT)
                # The last of these documents are repeated later, from all over the corpus.
                if len(earlier) < 100_000:
                    earlier.append(text)
                elif number % 8 == 0:
                    earlier[chance.randrange(len(earlier))] = text
            lines.write(f'{{"id": "d{number}", "text": "{" ".join(text)}"}}\n')


def temporary_bytes(process):
    """Returns the bytes of the open files of a process that have no name."""
    total = 0
    try:
        for link in os.scandir(f"/proc/{process.pid}/fd"):
            if "hapax-temporary" in os.readlink(link.path):
                total += os.stat(link.path).st_blocks * 512
    except FileNotFoundError:
        pass
    return total


def run(binary, corpus, output, options):
    """Runs hapax, and prints a row of the table."""
    command = [binary, "dedup", str(corpus), "-o", str(output), "--report", f"{output}.report", *options]
    with tempfile.TemporaryFile() as summary:
        begun, most = time.monotonic(), 0
        process = subprocess.Popen(command, stdout=summary, stderr=subprocess.DEVNULL)
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            most = max(most, temporary_bytes(process))
            time.sleep(0.2)
        seconds = time.monotonic() - begun
        assert status == 0, status
        summary.seek(0)
        rows = dict(line.rsplit(None, 1) for line in summary.read().decode().splitlines()[:4])
    documents = int(rows["documents"].replace(",", ""))
    processor = usage.ru_utime + usage.ru_stime
    print(f"| {' '.join(options) or 'in memory'} | {seconds:.0f} | {documents / seconds:,.0f} | {processor:.0f} "
          f"| {usage.ru_maxrss / 1024:,.0f} | {most / 1e6:,.0f} | {rows['kept']} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--documents", type=int, default=10_000_000)
    parser.add_argument("--memory", nargs="+", default=["2GiB"])
    parser.add_argument("--compare", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        corpus, output = Path(folder) / "in.jsonl", Path(folder) / "out.jsonl"
        generate(corpus, args.documents)
        print(f"{args.documents:,} generated documents, {corpus.stat().st_size / 1e6:,.0f} MB\n")
        print("| | seconds | documents/s | seconds of processors | MiB resident | MB of temporary files | kept |")
        print("|---|--:|--:|--:|--:|--:|--:|", flush=True)
        whole = Path(folder) / "whole.jsonl"
        if args.compare:
            run(args.binary, corpus, whole, [])
        for memory in args.memory:
            run(args.binary, corpus, output, ["--memory", memory])
            if args.compare:
                for one, other in [(output, whole), (f"{output}.report", f"{whole}.report")]:
                    assert filecmp.cmp(one, other, shallow=False), (one, other)


if __name__ == "__main__":
    sys.exit(main())
