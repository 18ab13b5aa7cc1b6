"""Compares `hapax dedup` with text-dedup, datatrove and datasketch: time and memory on generated documents, and the kept
documents on real corpora with exact truth.

Usage: dedup.py --hapax BINARY --text-dedup PYTHON --datatrove PYTHON [--documents N] [--corpora DIR] [--only NAME]

Each tool runs alone, with two processes or threads, and reads and writes JSON Lines. The times include the start of the
tool. Nothing is sent over a network.
"""

import argparse
import io
import json
import os
import random
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
WORKERS = 2
THRESHOLD = 0.8
# Names of corpora in DIR, with the shingles of their exact truth.
CORPORA = ["licences", "django_docs_5_versions", "boost_html_2_versions.text", "mccormick_1000"]


def main():
    options = parsed()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        tools = made(options)
        if options.documents:
            speed(folder, tools, options.documents)
        if options.corpora:
            for name in CORPORA:
                quality(folder, tools, options.corpora, name)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hapax", required=True, help="the binary of hapax")
    parser.add_argument("--text-dedup", help="a Python with text-dedup and datasketch")
    parser.add_argument("--datatrove", help="a Python with datatrove")
    parser.add_argument("--documents", type=int, default=100_000, help="generated documents; 0: none")
    parser.add_argument("--corpora", type=Path, nargs="?", help="the folder with the corpora and their exact truth")
    parser.add_argument("--only", action="append", help="the name of a tool; may be given several times")
    return parser.parse_args()


def made(options):
    """Returns the tools that are there, by name: a function from the input, the output and the words of a shingle to the
    arguments of a process."""

    def hapax(*more):
        return lambda path, out, words: [
            options.hapax, "dedup", path, "-o", out, "--shingle", f"word{words}", *more
        ]  # fmt: skip

    def python(interpreter, program):
        return lambda path, out, words: [interpreter, HERE / program, path, out, str(words), str(WORKERS)]

    tools = {
        "hapax": hapax("--threshold", str(THRESHOLD)),
        "hapax, fineweb": hapax("--preset", "fineweb"),
        "hapax, datasketch": hapax("--preset", "datasketch", "--threshold", str(THRESHOLD)),
    }
    if options.datatrove:
        tools["datatrove"] = python(options.datatrove, "with_datatrove.py")
    if options.text_dedup:
        tools["text-dedup"] = python(options.text_dedup, "with_text_dedup.py")
        tools["datasketch"] = python(options.text_dedup, "with_datasketch.py")
    return {name: tool for name, tool in tools.items() if not options.only or name in options.only}


def run(tool, path, out, words):
    """Runs a tool. Returns the seconds, the largest resident memory of one process in MB, and the ids of the kept
    documents."""
    begin = time.monotonic()
    process = subprocess.Popen(
        [str(argument) for argument in tool(path, out, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
        cwd=path.parent,
    )
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begin
    process.returncode = status
    if status != 0:
        raise SystemExit(f"{process.args} failed:\n{output.decode()[-3000:]}")
    kept = [json.loads(line)["id"] for line in open(out, encoding="utf-8")]
    return seconds, usage.ru_maxrss / 1024, kept


def speed(folder, tools, count):
    path = folder / "in.jsonl"
    generate(path, count)
    print(f"{count:,} generated documents, {path.stat().st_size / count:.0f} bytes a line, {WORKERS} workers\n")
    print("| tool | seconds | documents/s | times slower than hapax | MB resident | kept |")
    print("|---|---|---|---|---|---|")
    first = None
    for name, tool in tools.items():
        seconds, memory, kept = run(tool, path, folder / "out.jsonl", 5)
        first = first or seconds
        print(
            f"| {name} | {seconds:.1f} | {count / seconds:,.0f} | {seconds / first:.1f} | {memory:,.0f} | {len(kept):,} |",
            flush=True,
        )
    print()


def generate(path, count):
    """Writes documents of about 2 KB. 15 of 100 repeat an earlier one with a few other words."""
    random.seed(1)
    words = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=random.randint(2, 10))) for _ in range(30_000)]
    weights = [1 / (rank + 3) for rank in range(len(words))]
    total, cumulative = 0.0, []
    for weight in weights:
        total += weight
        cumulative.append(total)
    recent = []
    with open(path, "w", encoding="utf-8") as file:
        for number in range(count):
            if recent and random.random() < 0.15:
                text = list(random.choice(recent))
                for _ in range(random.randint(0, 12)):
                    text[random.randrange(len(text))] = random.choice(words)
            else:
                text = random.choices(words, cum_weights=cumulative, k=300)
            recent.append(text)
            recent = recent[-2000:]
            file.write(json.dumps({"id": f"doc-{number}", "text": " ".join(text)}) + "\n")


def quality(folder, tools, corpora, name):
    documents = uncompressed(corpora / f"{name}.jsonl.zst").splitlines()
    path = folder / "corpus.jsonl"
    path.write_bytes(b"\n".join(documents) + b"\n")
    ids = [json.loads(line)["id"] for line in documents]
    pairs = {}
    for line in io.TextIOWrapper(io.BytesIO(uncompressed(corpora / f"{name}.w3.j50.tsv.zst")), encoding="utf-8"):
        one, other, jaccard = line.rstrip("\n").split("\t")
        pairs[one, other] = float(jaccard)
    duplicates = [pair for pair, jaccard in pairs.items() if jaccard >= THRESHOLD]
    partner = {}
    for (one, other), jaccard in pairs.items():
        partner[one] = max(partner.get(one, 0), jaccard)
        partner[other] = max(partner.get(other, 0), jaccard)
    print(f"{name}: {len(ids):,} documents, {len(duplicates):,} pairs with J >= {THRESHOLD} (word3)\n")
    print("| tool | dropped | pairs of which both are kept | dropped without a duplicate at J >= 0.8 | at J >= 0.5 |")
    print("|---|---|---|---|---|")
    dropped = {}
    for tool in tools:
        _, _, kept = run(tools[tool], path, folder / "out.jsonl", 3)
        kept = set(kept)
        dropped[tool] = gone = [id for id in ids if id not in kept]
        missed = sum(one in kept and other in kept for one, other in duplicates) / max(len(duplicates), 1)
        false = [sum(partner.get(id, 0) < least for id in gone) / max(len(gone), 1) for least in (THRESHOLD, 0.5)]
        print(f"| {tool} | {len(gone):,} | {missed:.2%} | {false[0]:.2%} | {false[1]:.2%} |", flush=True)
    print()
    for ours, theirs in [("hapax, fineweb", "datatrove"), ("hapax, datasketch", "datasketch")]:
        if ours in dropped and theirs in dropped:
            one, other = set(dropped[ours]), set(dropped[theirs])
            print(
                f"{ours} and {theirs}: {len(one & other):,} documents are dropped by both, {len(one - other):,} by the"
                f" first only, {len(other - one):,} by the second only; {len(one ^ other) / len(ids):.2%} of all differ"
            )
    print(flush=True)


def uncompressed(path):
    return subprocess.run(["zstd", "-dcq", path], check=True, stdout=subprocess.PIPE).stdout


if __name__ == "__main__":
    main()
