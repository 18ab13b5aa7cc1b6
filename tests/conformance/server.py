"""Starts the server under test and stops it. This module does not know the requests that are sent."""

import json
import os
import signal
import subprocess
import sys


def start(binary, folder, settings, listen="127.0.0.1:0"):
    """Returns a server that is ready, and its address. Its data and its log are in `folder`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HAPAX")}
    server = subprocess.Popen(
        [binary, "serve", "--listen", listen, "--data-dir", folder / "data", "--log-format", "json"],
        cwd=folder,
        env={**kept, **settings},
        stdout=subprocess.PIPE,
        stderr=open(folder / "log", "wb"),
        text=True,
    )
    ready = ""
    try:
        ready = server.stdout.readline()
    finally:
        if "ready on " not in ready:
            server.kill()
    if not ready:
        sys.exit(f"the server did not start: {ready}{(folder / 'log').read_text()}")
    return server, ready.split("ready on ")[1].split()[0]


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
        # 507 is an answer of the mode `full` only.
        elif json.loads(line).get("level") == "ERROR" and json.loads(line).get("status") != 507:
            faults.append(f"the log has an error: {line}")
    return faults[:20]
