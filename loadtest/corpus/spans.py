"""Finds the passages of generated documents that earlier ones have with `hapax spans`, and prints the speed.

Some documents have a passage of an earlier one. All of these must be found. Run it with `make bench-spans`.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORDS, PASSAGE_WORDS = 380, 120


def documents(count, seed):
    """Yields texts of about 2.5 KB, and whether each has a passage of an earlier one."""
    chance = random.Random(seed)
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(20_000)]
    weights = [1 / (rank + 10) for rank in range(len(words))]
    passages = []
    for number in range(count):
        text = chance.choices(words, weights, k=WORDS)
        has_passage = bool(passages) and chance.random() < 0.3
        if has_passage:
            at = chance.randrange(len(text))
            text[at:at] = chance.choice(passages)
        elif number < count / 10:
            passages.append(text[:PASSAGE_WORDS])
        yield " ".join(text), has_passage


def run(binary, arguments):
    """Runs hapax. Returns the seconds, those of its processors, the peak of its memory in KiB, and its summary."""
    with tempfile.TemporaryFile() as summary:
        begun = time.monotonic()
        process = subprocess.Popen([binary, "spans", *arguments], stdout=summary, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begun
        assert status == 0, status
        summary.seek(0)
        return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, summary.read().decode()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--memory", nargs="+", default=["4GiB", "1GiB"])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        corpus, output = Path(temporary) / "corpus.jsonl", Path(temporary) / "spans.jsonl"
        expected = set()
        with corpus.open("w", encoding="utf-8") as lines:
            for number, (text, has_passage) in enumerate(documents(args.documents, 1)):
                lines.write(json.dumps({"id": f"d{number}", "text": text}) + "\n")
                if has_passage:
                    expected.add(f"d{number}")
        size = corpus.stat().st_size / 1e6
        print(f"{args.documents:,} documents, {size:.0f} MB, {len(expected):,} with a passage", flush=True)
        for memory in args.memory:
            seconds, processor, peak, summary = run(
                args.binary, [str(corpus), "-o", str(output), "--memory", memory]
            )
            found = {json.loads(line)["id"] for line in output.open(encoding="utf-8")}
            assert found == expected, (len(found), len(expected))
            print(f"\n--memory {memory}: {seconds:.1f} s, {size / seconds:.1f} MB/s; {processor:.1f} s of processors, "
                  f"{size / processor:.1f} MB/s a processor; peak {peak / 1024:.0f} MiB")
            print(summary, flush=True)


if __name__ == "__main__":
    sys.exit(main())
