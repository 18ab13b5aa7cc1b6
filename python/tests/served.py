"""A real server for tests: the binary that HAPAX_BINARY names."""

import os
import subprocess

import pytest

BINARY = os.environ.get("HAPAX_BINARY")
needs_server = pytest.mark.skipif(not BINARY, reason="HAPAX_BINARY names no server")


def environment(**variables):
    """The environment variables of this process except those of hapax, and the given variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HAPAX")}
    return {**kept, **variables}


class Served:
    """A server that listens on a free port of this machine."""

    def __init__(self, folder, data="data", **variables):
        self.process = subprocess.Popen(
            [BINARY, "serve", "--listen", "127.0.0.1:0", "--data-dir", folder / data],
            cwd=folder,
            env=environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        ready = self.process.stdout.readline()
        assert "ready on " in ready
        self.url = ready.split("ready on ")[1].split()[0]

    def stop(self):
        self.process.terminate()
        assert self.process.wait(60) == 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stop()
