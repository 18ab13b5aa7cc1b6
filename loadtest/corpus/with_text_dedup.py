"""Deduplicates a file with text-dedup, and writes its result as JSON Lines.

Usage: with_text_dedup.py INPUT OUTPUT WORDS WORKERS
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from datasets import load_from_disk

THRESHOLD = 0.8


def main():
    path, out, words, workers = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        subprocess.run(
            [sys.executable, "-m", "text_dedup.minhash", "--path", "json", "--data_files", str(path), "--split", "train"]
            + ["--cache_dir", f"{folder}/cache", "--output", f"{folder}/out", "--column", "text"]
            + ["--ngram", words, "--threshold", str(THRESHOLD), "--num_proc", workers, "--min_length", "0"],
            check=True,
        )
        load_from_disk(f"{folder}/out").to_json(out, num_proc=1)


if __name__ == "__main__":
    main()
