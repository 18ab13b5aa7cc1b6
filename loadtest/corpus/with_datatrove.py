"""Deduplicates a file with datatrove, with the parameters of FineWeb: 14 buckets of 8 hashes, and clusters that are not
verified.

Usage: with_datatrove.py INPUT OUTPUT WORDS WORKERS
"""

import os
import sys
import tempfile
from pathlib import Path

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup.minhash import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers.jsonl import JsonlWriter


def main():
    path, out, words, workers = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    config = MinhashConfig(n_grams=words, num_buckets=14, hashes_per_bucket=8)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        folder = Path(folder)
        parts = divide(path, folder / "in", workers)

        def execute(tasks, *pipeline):
            name = type(pipeline[-1]).__name__ if len(pipeline) > 1 else type(pipeline[0]).__name__
            LocalPipelineExecutor(
                pipeline=list(pipeline), tasks=tasks, workers=workers, logging_dir=str(folder / "logs" / name)
            ).run()

        read = JsonlReader(str(folder / "in"), text_key="text", id_key="id")
        execute(parts, read, MinhashDedupSignature(output_folder=str(folder / "signatures"), config=config))
        execute(
            config.num_buckets,
            MinhashDedupBuckets(
                input_folder=str(folder / "signatures"), output_folder=str(folder / "buckets"), config=config
            ),
        )
        execute(
            1,
            MinhashDedupCluster(
                input_folder=str(folder / "buckets"), output_folder=str(folder / "removed"), config=config
            ),
        )
        write = JsonlWriter(str(folder / "out"), output_filename="${rank}.jsonl", compression=None)
        execute(parts, read, MinhashDedupFilter(input_folder=str(folder / "removed")), write)
        with open(out, "wb") as file:
            for part in sorted((folder / "out").iterdir()):
                file.write(part.read_bytes())


def divide(path, folder, count):
    """Divides a file into parts of consecutive lines, one for each process."""
    os.makedirs(folder)
    lines = path.read_bytes().splitlines(keepends=True)
    each = -(-len(lines) // count)
    for part in range(count):
        (folder / f"{part}.jsonl").write_bytes(b"".join(lines[part * each : (part + 1) * each]))
    return count


if __name__ == "__main__":
    main()
