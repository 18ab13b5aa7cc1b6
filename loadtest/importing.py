"""Compares `hapax import --data-dir` with `hapax import` through a server on the same machine, as a ratio within one run.

Both import the same file of generated texts of about 2 KB, by turns, on the same processors. The time through a server is
that of `hapax import`, against a server that is new and ready. The time without a server includes the opening and the
closing of the data directory. No verdicts are written. Run it with `make bench-import`.
"""

import argparse
import json
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path


def write_texts(path, count):
    """Writes texts of words with the lengths and frequencies of English."""
    chance = random.Random(1)
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(20_000)]
    weights = list(accumulate(1 / (rank + 10) for rank in range(len(words))))
    with open(path, "w", encoding="utf-8") as lines:
        for number in range(count):
            text = " ".join(chance.choices(words, cum_weights=weights, k=310))
            lines.write(json.dumps({"id": f"https://example.org/{number}", "text": text}) + "\n")


def imported(binary, arguments):
    """Imports, and returns the seconds that this took."""
    begun = time.monotonic()
    done = subprocess.run([binary, "import", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{arguments}: {done.stderr}")
    return time.monotonic() - begun


def through_a_server(binary, file, data):
    server = subprocess.Popen(
        [binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", data],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        url = server.stdout.readline().split("ready on ")[1].split()[0]
        return imported(binary, [file, "--server", url])
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)


def without_a_server(binary, file, data):
    return imported(binary, [file, "--data-dir", data])


def processor_seconds():
    """Returns the processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True, help="the binary of hapax")
    parser.add_argument("--documents", type=int, default=200_000, help="generated documents")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    ways = {"through a server": through_a_server, "--data-dir": without_a_server}
    taken = {name: [] for name in ways}
    used = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "texts.jsonl"
        write_texts(file, options.documents)
        for number in range(options.rounds):
            for name, way in ways.items():
                before = processor_seconds()
                seconds = way(options.binary, file, Path(folder) / "data")
                used[name].append(processor_seconds() - before)
                taken[name].append(seconds)
                shutil.rmtree(Path(folder) / "data")
                print(f"round {number + 1}, {name}: {options.documents / seconds:,.0f} documents/s", flush=True)
    ratios = [server / direct for server, direct in zip(*taken.values())]
    cpu = [server / direct for server, direct in zip(*used.values())]
    for name, seconds in taken.items():
        rate = options.documents / statistics.median(seconds)
        each = statistics.median(used[name]) / options.documents * 1e6
        print(f"{name}: median {rate:,.0f} documents/s, {each:.1f} µs of processor time a document")
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"--data-dir is {statistics.median(ratios):.2f} times as fast ({spread}); processor time: {statistics.median(cpu):.2f}")


if __name__ == "__main__":
    main()
