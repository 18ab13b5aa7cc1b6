"""Sends requests made from openapi.yaml to a real server, and compares every answer with openapi.yaml.

Usage: run.py BINARY [--seed N] [--examples N]

Schemathesis makes the requests: valid and invalid ones for each operation, and chains of requests that pass ids and
cursors on. It runs twice, against a server without a key and against one with a key. After each run the server must
stop with status 0, its log must have no error, and `hapax verify` must find no damage.

A failure is reproduced with the seed that is printed first.
"""

import argparse
import json
import os
import pathlib
import random
import signal
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
KEY = "a-key-for-the-conformance-tests"
# One run takes about a minute; a run that hangs is ended.
RUN_SECONDS_MAX = 600
# The collections that requests name more often than others; the names are in refine.py too.
COLLECTIONS = {
    "exact": {"verify": "exact", "keep": "text", "shingle": "word2"},
    "links": {"shingle": "char4", "sketch": "oph64x16", "threshold": 0.5},
    "secret": {"key": "configured", "keep": "shingles"},
    "external": {"spec": "external:ours:64x8"},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--examples", type=int, default=20, help="test cases for each operation and phase")
    arguments = parser.parse_args()
    # So that a stopped run stops its server too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    seed = random.randrange(2**32) if arguments.seed is None else arguments.seed
    print(f"conformance: seed {seed}; run again with CONFORMANCE_SEED={seed}", flush=True)
    faults = []
    for mode, key in [("without a key", None), ("with a key", KEY)]:
        print(f"\nconformance: a server {mode}", flush=True)
        faults += [f"{mode}: {fault}" for fault in one_run(arguments, seed, key)]
    for fault in faults:
        print(f"conformance: {fault}", file=sys.stderr)
    return 1 if faults else 0


def one_run(arguments, seed, key):
    """Returns the faults that it finds."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hapax-conformance-"))
    binary = arguments.binary.resolve()
    server, address = start(binary, folder, key)
    faults = []
    try:
        make_collections(address, key)
        if run_schemathesis(address, folder, seed, arguments.examples, key) != 0:
            faults.append("some answers differ from openapi.yaml; see above")
    finally:
        faults += stop(server, folder)
    verified = subprocess.run([binary, "verify", "--data-dir", folder / "data"], capture_output=True, text=True, timeout=300)
    if verified.returncode != 0:
        faults.append(f"hapax verify ended with {verified.returncode}: {verified.stdout}{verified.stderr}")
    if faults:
        faults.append(f"the data and the log are in {folder}")
    else:
        shutil.rmtree(folder)
    return faults


def start(binary, folder, key):
    """Returns a server that is ready, and its address."""
    settings = {
        "HAPAX__BACKUP__DIR": str(folder / "backups"),
        "HAPAX__COLLECTIONS__MAX": "200",
        "HAPAX__HASHING__SECRET": "000102030405060708090a0b0c0d0e0f",
        # On a busy machine, requests wait.
        "HAPAX__SERVER__QUEUE_DELAY_MAX_MS": "0",
        "HAPAX__SERVER__BATCH_DELAY_MAX_MS": "0",
        # Reading again what is stored would slow everything else down on a small machine.
        "HAPAX__SCRUB__BYTES_PER_SECOND": "0",
    }
    if key:
        settings["HAPAX__AUTH__API_KEY"] = key
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HAPAX")}
    server = subprocess.Popen(
        [binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", folder / "data", "--log-format", "json"],
        cwd=folder,
        env={**kept, **settings},
        stdout=subprocess.PIPE,
        stderr=open(folder / "log", "wb"),
        text=True,
    )
    ready = server.stdout.readline()
    if "ready on " not in ready:
        server.kill()
        sys.exit(f"the server did not start: {ready}{(folder / 'log').read_text()}")
    return server, ready.split("ready on ")[1].split()[0]


def make_collections(address, key):
    for name, settings in COLLECTIONS.items():
        request = urllib.request.Request(
            f"{address}/v1/collections/{name}",
            data=json.dumps(settings).encode(),
            method="PUT",
            headers={"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 201, answer.read()


def run_schemathesis(address, folder, seed, examples, key):
    """Returns its exit status."""
    config = (HERE / "schemathesis.toml").read_text()
    if key:
        config = f'{config}\n[auth.openapi.key]\nbearer = "{key}"\n'
    (folder / "schemathesis.toml").write_text(config)
    command = [
        pathlib.Path(sys.executable).parent / "schemathesis",
        "--no-color",
        f"--config-file={folder / 'schemathesis.toml'}",
        "run",
        str(ROOT / "openapi.yaml"),
        f"--url={address}",
        f"--seed={seed}",
        f"--max-examples={examples}",
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": str(HERE),
        "PYTHONDONTWRITEBYTECODE": "1",
        "SCHEMATHESIS_HOOKS": "hooks",
        "HAPAX_CONFORMANCE_KEY": key or "",
    }
    return subprocess.run(command, cwd=folder, env=environment, timeout=RUN_SECONDS_MAX).returncode


def stop(server, folder):
    """Stops the server. Returns the faults of its end and of its log."""
    faults = []
    if server.poll() is not None:
        faults.append(f"the server ended by itself with {server.returncode}")
    else:
        server.send_signal(signal.SIGTERM)
        try:
            if server.wait(timeout=60) != 0:
                faults.append(f"the server stopped with {server.returncode}")
        except subprocess.TimeoutExpired:
            server.kill()
            faults.append("the server did not stop within 60 s")
    for line in (folder / "log").read_text(errors="replace").splitlines():
        if not line.startswith("{"):
            faults.append(f"the log has a line that is not JSON: {line}")
        elif json.loads(line).get("level") == "ERROR":
            faults.append(f"the log has an error: {line}")
    return faults[:20]


if __name__ == "__main__":
    sys.exit(main())
