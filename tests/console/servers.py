"""The servers under test, each with real data. A server starts when it is used for the first time."""

import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from api import Api

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "conformance"))

import access  # noqa: E402
from server import start, stop  # noqa: E402

SCOPES = (*dict.fromkeys([*access.SCOPES, "keys"]),)
COMMON = {
    # On a busy machine, requests wait. They must not be refused because of this wait.
    "HAPAX__SERVER__QUEUE_DELAY_MAX_MS": "0",
    "HAPAX__SERVER__BATCH_DELAY_MAX_MS": "0",
    "HAPAX__CPU__QUEUE_DELAY_MAX_MS": "0",
    "HAPAX__SCRUB__BYTES_PER_SECOND": "0",
}


class Server:
    """A server. `settings`: environment variables. `keys`: the keys of its keys file; without any, it has no keys.
    `fill(api)` stores its data. `errors`: words of errors that its log may have."""

    def __init__(self, binary, name, settings=None, keys=(), fill=None, errors=()):
        self.binary, self.name, self.keys, self.errors = binary, name, list(keys), errors
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"hapax-console-{name}-"))
        self.settings = {**COMMON, **(settings or {})}
        self.process = self.address = None
        self.fill = fill

    def path(self, name):
        return self.folder / name

    def begin(self):
        """Starts the server, if it does not run, on the address that it had before."""
        if self.process is not None:
            return self
        if self.keys:
            self.write_keys()
            self.settings["HAPAX__AUTH__KEYS_FILE"] = str(self.path("keys.toml"))
        listen = self.address.removeprefix("http://") if self.address else "127.0.0.1:0"
        self.process, self.address = start(self.binary, self.folder, self.settings, listen)
        self.api = Api(self.address, self.keys[0].text if self.keys else None)
        fill, self.fill = self.fill, None
        if fill:
            fill(self.api)
        return self

    def write_keys(self):
        """Writes the keys file. A running server uses it within two seconds."""
        file = "version = 1\n" + "\n".join(key.toml(at) for at, key in enumerate(self.keys)) + "\n"
        self.path("new.toml").write_text(file)
        self.path("new.toml").replace(self.path("keys.toml"))

    def url(self, path=""):
        return f"{self.begin().address}/console/{path}"

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process = None

    def stop(self):
        """Stops the server. Returns the faults of its end and of its log."""
        if self.process is None:
            return []
        process, self.process = self.process, None
        faults = stop(process, self.folder)
        return [f"{self.name}: {one}" for one in faults if not any(error in one for error in self.errors)]

    def end(self):
        """Stops the server and removes its data. Returns the faults of the server and of its data, which then stays."""
        faults = self.stop()
        data = self.path("data")
        if data.exists() and not self.errors:
            command = [self.binary, "verify", "--data-dir", data]
            verified = subprocess.run(command, capture_output=True, text=True, timeout=300)
            if verified.returncode != 0:
                faults.append(f"{self.name}: hapax verify: {verified.stdout}{verified.stderr}")
        if not faults:
            shutil.rmtree(self.folder, ignore_errors=True)
            return []
        return [*faults, f"{self.name}: the data and the log are in {self.folder}"]
