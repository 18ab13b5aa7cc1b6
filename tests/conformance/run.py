"""Sends requests made from openapi.yaml to a real server, and compares every answer with openapi.yaml.

Usage: run.py BINARY [--seed N] [--examples N]

Schemathesis makes the requests: valid and invalid ones for each operation, and chains of requests that pass on ids and
cursors. It runs three times. In the first run, the server has no keys. In the second run, the server has a keys file,
and each request is sent again with another key of access.py. In the third run, the key sees only verdicts. After each
run the server must stop with status 0, its log must have no error, and `hapax verify` must find no damage.

A failure is reproduced with the seed that is printed first.
"""

import argparse
import json
import os
import pathlib
import random
import re
import signal
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

import access
import refusals
import yaml
from refine import TEXTS
from server import start, stop

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# One run takes about a minute; a run that hangs is ended.
RUN_SECONDS_MAX = 600
MODES = {
    "none": "a server without keys",
    "keys": "a server with a keys file, and each request with two keys",
    "verdict": "a key that sees only verdicts",
    "full": "a server whose places and memory are used up",
}
# The collections that requests name more often than others. refine.py has the same names.
COLLECTIONS = {
    "exact": {"verify": "exact", "keep": "text", "shingle": "word2"},
    "links": {"shingle": "char4", "sketch": "oph64x16", "threshold": 0.5},
    "secret": {"key": "configured", "keep": "shingles"},
    "twin": {"threshold": 0.6},
    "external": {"spec": "external:ours:64x8"},
}
# Requests to these paths would revoke the keys of the tests, or need times in forms that the description has only in words.
# tests/it/openapi.rs compares their answers with the description.
LEFT_OUT = "^/v1/(keys|audit)"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--modes", default=",".join(MODES), help="some of these, separated by commas")
    parser.add_argument("--examples", type=int, default=20, help="test cases for each operation and phase")
    arguments = parser.parse_args()
    # If a run is stopped, it also stops its server and Schemathesis.
    for stopping in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(stopping, lambda *_: sys.exit(1))
    seed = random.randrange(2**32) if arguments.seed is None else arguments.seed
    print(f"conformance: seed {seed}; run again with CONFORMANCE_SEED={seed}", flush=True)
    faults = []
    for mode in arguments.modes.split(","):
        print(f"\nconformance: {mode}, {MODES[mode]}", flush=True)
        faults += [f"{mode}: {fault}" for fault in one_run(arguments, seed, mode)]
    for fault in faults:
        print(f"conformance: {fault}", file=sys.stderr)
    return 1 if faults else 0


def one_run(arguments, seed, mode):
    """Tests a server in this mode. Returns the faults that are found."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hapax-conformance-"))
    binary = arguments.binary.resolve()
    server, address = start(binary, folder, settings_of(mode, folder))
    faults = []
    try:
        if mode == "full":
            faults += refusals.faults(address, ROOT / "openapi.yaml")
        else:
            faults += generated(address, folder, seed, arguments.examples, mode)
    finally:
        faults += stop(server, folder)
    verify = [binary, "verify", "--data-dir", folder / "data"]
    verified = subprocess.run(verify, capture_output=True, text=True, timeout=300)
    if verified.returncode != 0:
        faults.append(f"hapax verify ended with {verified.returncode}: {verified.stdout}{verified.stderr}")
    if faults:
        faults.append(f"the data and the log are in {folder}")
    else:
        shutil.rmtree(folder)
    return faults


def generated(address, folder, seed, examples, mode):
    """Sends generated requests. Returns the faults of the answers."""
    prepare(address)
    if run_schemathesis(address, folder, seed, examples, mode) == 0:
        return not_met(mode, json.loads((folder / "met.json").read_text()))
    return ["some answers differ from openapi.yaml; see above"]


def settings_of(mode, folder):
    """Returns the settings of the server, as environment variables."""
    settings = {
        "HAPAX__BACKUP__DIR": str(folder / "backups"),
        "HAPAX__COLLECTIONS__MAX": "200",
        "HAPAX__HASHING__SECRET": "000102030405060708090a0b0c0d0e0f",
        # On a busy machine, requests wait. They must not be refused because of this wait.
        "HAPAX__SERVER__QUEUE_DELAY_MAX_MS": "0",
        "HAPAX__SERVER__BATCH_DELAY_MAX_MS": "0",
        "HAPAX__CPU__QUEUE_DELAY_MAX_MS": "0",
        # The scrub would slow down everything else on a small machine, so it is off.
        "HAPAX__SCRUB__BYTES_PER_SECOND": "0",
    }
    if mode == "full":
        settings |= refusals.SETTINGS
    elif mode != "none":
        (folder / "keys.toml").write_text(access.keys_file())
        settings["HAPAX__AUTH__KEYS_FILE"] = str(folder / "keys.toml")
    return settings


def prepare(address):
    """Makes the collections, and stores the first document."""
    for name, settings in COLLECTIONS.items():
        send("PUT", f"{address}/v1/collections/{name}", settings)
    send("POST", f"{address}/v1/collections/default/documents", {"id": "story", "text": TEXTS[0]})


def send(method, url, body):
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {access.ALL.text}"}
    request = urllib.request.Request(url, data=json.dumps(body).encode(), method=method, headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status in (200, 201), answer.read()


def run_schemathesis(address, folder, seed, examples, mode):
    """Runs Schemathesis. Returns its exit status."""
    config = (HERE / "schemathesis.toml").read_text()
    key = {"keys": access.ALL, "verdict": access.VERDICT}.get(mode)
    if key:
        config = f'{config}\n[auth.openapi.key]\nbearer = "{key.text}"\n'
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
        f"--exclude-path-regex={LEFT_OUT}",
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": str(HERE),
        "PYTHONDONTWRITEBYTECODE": "1",
        "SCHEMATHESIS_HOOKS": "hooks",
        "HAPAX_CONFORMANCE_MODE": mode,
    }
    return subprocess.run(command, cwd=folder, env=environment, timeout=RUN_SECONDS_MAX).returncode


def not_met(mode, met):
    """Returns the expected statuses and verdicts that did not occur. The checks have not tested these."""
    description = yaml.safe_load((ROOT / "openapi.yaml").read_text())
    paths = [item for path, item in description["paths"].items() if not re.match(LEFT_OUT, path)]
    operations = [operation for item in paths for operation in item.values()]
    guarded = [one["operationId"] for one in operations if "tags" in one and one.get("security")]
    expected = {
        "none": [],
        "keys": [*(f"{operation} {status}" for operation in guarded for status in (401, 403, 429)), "loadCollection 201"],
        "verdict": [*(f"{operation} 200" for operation in sorted(access.COARSE)), "near_duplicate", "exact_duplicate"],
    }
    # Every key may ask what it may do.
    missing = [one for one in expected[mode] if one not in met and one != "readAccess 403"]
    return [f"never met: {', '.join(missing)}"] if missing else []


if __name__ == "__main__":
    sys.exit(main())
