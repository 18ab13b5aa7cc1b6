"""Opens the console of real servers in a real Chromium, and uses it as a person does.

Usage: run.py BINARY [--pictures DIR] [--only WORDS]

Each check also fails if a page causes an error in the browser's console, sends a request to another origin, breaks its
security policy, is wider than the window, or keeps a key anywhere but in the session storage. With --pictures, pictures
of the views are saved. With --only, only checks run whose names contain these words.
"""

import argparse
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

import world

# Each of these modules adds its checks to the list, in this order.
import views  # noqa: F401  isort: skip
import actions  # noqa: F401  isort: skip
import operating  # noqa: F401  isort: skip
import addresses  # noqa: F401  isort: skip
import keys  # noqa: F401  isort: skip
import failures  # noqa: F401  isort: skip
import hostile  # noqa: F401  isort: skip
import live  # noqa: F401  isort: skip
import speed  # noqa: F401  isort: skip
import files  # noqa: F401  isort: skip
import proxy  # noqa: F401  isort: skip


PROGRAMS = ["chromium", "chromedriver", "nginx"]
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("--pictures", type=pathlib.Path, help="the directory for pictures of the views")
    parser.add_argument("--only", default="", help="words in the names of the checks to run, separated by commas")
    arguments = parser.parse_args()
    # If a run is stopped, it also stops its servers and its browser.
    for stopping in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(stopping, lambda *_: sys.exit(1))
    lacking = [program for program in PROGRAMS if not shutil.which(program, path=PATH)]
    if lacking:
        sys.exit(f"console: {', '.join(lacking)} cannot be found; install chromium, chromium-driver and nginx-light")
    chosen = [check for check in world.CHECKS if any(words in check.name for words in arguments.only.split(","))]
    begun = time.monotonic()
    faults = run(chosen, arguments.binary.resolve(), arguments.pictures)
    for fault in faults:
        print(f"console: {fault}", file=sys.stderr)
    print(f"console: {len(chosen)} checks, {len(faults)} faults, {time.monotonic() - begun:.0f} s")
    return 1 if faults or not chosen else 0


def run(chosen, binary, pictures):
    """Runs checks. Returns their faults."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hapax-console-"))
    all_of_it = world.World(binary, folder, pictures)
    faults = []
    try:
        if any(check.run.__module__ == "speed" for check in chosen):
            all_of_it.crowding.start()
        for check in chosen:
            faults += all_of_it.one(check)
    finally:
        faults += all_of_it.end()
    if faults:
        faults.append(f"pictures and texts of the pages are in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return faults


if __name__ == "__main__":
    sys.exit(main())
