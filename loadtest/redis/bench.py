"""Measures hapax in front of a Redis Cluster: speed, memory, long keys, copies and moving slots.

All servers and clients run on the same two processors. `make bench-redis` installs the libraries that this needs.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import bounds
import copying
import memory
import moving
import speed
from server import Texts

PARTS = {
    "speed": speed.measure,
    "memory": memory.measure,
    "bounds": bounds.measure,
    "copy": copying.measure,
    "moving": moving.measure,
}
PROCESSORS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=[], help=f"{', '.join(PARTS)} [default: all of them]")
    parser.add_argument("--hapax", required=True, type=Path, help="the program hapax")
    parser.add_argument("--loadtest", required=True, type=Path, help="the program hapax-loadtest")
    parser.add_argument(
        "--server", default="redis-server", help="the server of the cluster's nodes [default: redis-server]"
    )
    parser.add_argument("--documents", type=int, default=100_000, help="stored documents [default: 100000]")
    parser.add_argument("--valkey", help="a valkey-server, to measure memory with it, too [default: leave it out]")
    parser.add_argument("--large", type=int, metavar="N", help="also with N stored documents; a million takes long")
    parser.add_argument("--seconds", type=int, default=4, help="seconds of each measurement [default: 4]")
    parser.add_argument("--rounds", type=int, default=3, help="[default: 3]")
    options = parser.parse_args()
    for program in ("wrk", "redis-server"):
        if not shutil.which(program):
            sys.exit(f"{program} is missing; install it with the system's packages")
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
    # So that SIGTERM also ends the nodes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    # The programs that this one starts inherit the processors.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:PROCESSORS])
    options.work = Path(tempfile.mkdtemp(prefix="hapax-redis-", dir=os.environ.get("HAPAX_BENCH_DIR")))
    try:
        texts = Texts(options.loadtest, options.work)
        made = [bar for part in options.parts or PARTS for bar in PARTS[part](options, texts)]
    finally:
        shutil.rmtree(options.work)
    if missed := [bar.name for bar in made if bar.is_missed]:
        sys.exit(f"missed: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
