"""Compares imports of the same documents, as ratios within one run: through a server on the same machine and with
--data-dir, and from JSON Lines and Parquet.

All import the same generated texts of about 2 KB, by turns, on the same processors. The time through a server is
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


def write_parquet(lines, path):
    """Writes the same documents as Parquet, as pandas and others write it: compressed, in row groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open(lines, encoding="utf-8") as file:
        documents = [json.loads(line) for line in file]
    columns = {name: [document[name] for document in documents] for name in ("id", "text")}
    pq.write_table(pa.table(columns), path, row_group_size=20_000)


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
    ways = {"a server": through_a_server, "--data-dir": without_a_server}
    runs = [(way, kind) for way in ways for kind in ("JSON Lines", "Parquet")]
    taken, used = {run: [] for run in runs}, {run: [] for run in runs}
    with tempfile.TemporaryDirectory() as folder:
        files = {"JSON Lines": Path(folder) / "texts.jsonl", "Parquet": Path(folder) / "texts.parquet"}
        write_texts(files["JSON Lines"], options.documents)
        write_parquet(files["JSON Lines"], files["Parquet"])
        for number in range(options.rounds):
            for way, kind in runs:
                before = processor_seconds()
                seconds = ways[way](options.binary, files[kind], Path(folder) / "data")
                used[way, kind].append(processor_seconds() - before)
                taken[way, kind].append(seconds)
                shutil.rmtree(Path(folder) / "data")
                print(f"round {number + 1}, {way}, {kind}: {options.documents / seconds:,.0f} documents/s", flush=True)
    for (way, kind), seconds in taken.items():
        rate = options.documents / statistics.median(seconds)
        each = statistics.median(used[way, kind]) / options.documents * 1e6
        print(f"{way}, {kind}: median {rate:,.0f} documents/s, {each:.1f} µs of processor time a document")
    for title, slow, fast in [
        ("a server : --data-dir", ("a server", "JSON Lines"), ("--data-dir", "JSON Lines")),
        ("Parquet : JSON Lines, through a server", ("a server", "Parquet"), ("a server", "JSON Lines")),
        ("Parquet : JSON Lines, --data-dir", ("--data-dir", "Parquet"), ("--data-dir", "JSON Lines")),
    ]:
        told = [f"{what} {ratio(of[slow], of[fast])}" for what, of in [("time", taken), ("processor time", used)]]
        print(f"{title}: {', '.join(told)}")


def ratio(slow, fast):
    """Returns the median of the ratios of the rounds, with their spread."""
    ratios = [one / other for one, other in zip(slow, fast)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


if __name__ == "__main__":
    main()
