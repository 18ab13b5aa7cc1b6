"""Makes the pictures of the dashboard in docs/images: `make pictures` builds hapax and runs this.

It starts hapax and Prometheus on 127.0.0.1, in a folder that is removed at the end. For about five minutes hapax gets
the load of `hapax-loadtest soak`. This program also sends requests that the load test does not send: faulty requests,
long texts, and for half a minute more bulk requests than hapax accepts at the same time. Then draw.py draws the
dashboard. At the end, all programs that were started are stopped. The package prometheus must be installed.
"""

import argparse
import contextlib
import http.client
import json
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from datetime import datetime, timedelta, timezone
from pathlib import Path

import draw

ROOT = Path(__file__).resolve().parent.parent.parent
SCRAPE_SECONDS = 5
# The name of the server in the pictures.
INSTANCE = "hapax.internal:8080"
COLLECTION = "/v1/collections/default"
BULK_PLACES = 8
# The number of clients of bulk requests, and the parts of the load's time at which they begin and end.
BULK_CLIENTS = 12
BULK_FROM, BULK_TO = 0.6, 0.72
WORDS = [first + last for first in ("bar", "cor", "del", "fin", "gal", "har", "lum", "mer") for last in
         ("a", "en", "is", "o", "ud", "ant", "elle", "ing", "or", "umn")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hapax", type=Path, default=ROOT / "target/release/hapax", metavar="FILE")
    parser.add_argument("--loadtest", type=Path, default=ROOT / "target/release/hapax-loadtest", metavar="FILE")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/images", metavar="DIR")
    parser.add_argument("--seconds", type=int, default=300, help="how long the load lasts [default: 300]")
    parser.add_argument("--rate", type=int, default=300, help="requests of the load test per second [default: 300]")
    arguments = parser.parse_args()
    for program in (arguments.hapax, arguments.loadtest, "prometheus"):
        if not shutil.which(program):
            return f"pictures.py: {program} is not there; run `make pictures`, and install the package prometheus"
    # A run that is stopped must also stop the programs that it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # Connections to this machine use no proxy.
    os.environ["no_proxy"] = "127.0.0.1"
    with tempfile.TemporaryDirectory(prefix="hapax-pictures-") as folder, contextlib.ExitStack() as started:
        try:
            run(arguments, Path(folder), started)
        except (draw.Fault, OSError, http.client.HTTPException, subprocess.SubprocessError) as fault:
            return f"pictures.py: {fault}"


def run(arguments, folder, started):
    key = folder / "key"
    key.write_text(secrets.token_hex(16))
    port = start_hapax(arguments.hapax, folder, started)
    prometheus = start_prometheus(folder, port, started)
    client = Client(port, key.read_text())
    client.must("PUT", f"{COLLECTION}/golden", {"pairs": [golden_pair(number) for number in range(192)]})
    client.must("POST", "/v1/backups", {"name": "first"})
    load = subprocess.Popen(
        [arguments.loadtest, "soak", "--server", f"http://127.0.0.1:{port}", "--api-key-file", key, "--documents", "20000",
         "--bytes", "1500", "--rate", str(arguments.rate), "--seconds", str(arguments.seconds), "--cycle", "120", "--ttl", "45"],
        stdout=subprocess.PIPE, text=True)
    started.callback(stop, load)
    send_others(client, load, arguments.seconds)
    report, _ = load.communicate(timeout=120)
    if load.returncode != 0:
        raise draw.Fault(f"the load test found faults:\n{report}")
    # The pictures leave out the import before the load, which is much faster, and the first seconds of the load.
    end = datetime.now(timezone.utc)
    begin = end - timedelta(seconds=arguments.seconds - 6 * SCRAPE_SECONDS)
    draw.draw(draw.Source(prometheus, begin, end, SCRAPE_SECONDS, {}), draw.HERE / "hapax.json", arguments.out)


def start_hapax(binary, folder, started):
    """Starts hapax, and returns its port when it is ready."""
    settings = {
        "AUTH__API_KEY_FILE": folder / "key",
        "AUDIT__DIR": folder / "audit",
        "BACKUP__DIR": folder / "backups",
        "DATA__DIR": folder / "data",
        "LOG__LEVEL": "error",
        # So that the lines for memory are near each other.
        "MEMORY__MAX_BYTES": 1 << 29,
        "SERVER__BULK_REQUESTS_MAX": BULK_PLACES,
        "SERVER__LISTEN": "127.0.0.1:0",
    }
    environment = os.environ | {f"HAPAX__{name}": str(value) for name, value in settings.items()}
    server = subprocess.Popen([binary, "serve"], env=environment, stdout=subprocess.PIPE, text=True)
    started.callback(stop, server)
    line = server.stdout.readline()
    if "http://" not in line:
        raise draw.Fault(f"{binary} did not start")
    return int(line.split("http://")[1].split()[0].rsplit(":", 1)[1])


def start_prometheus(folder, port, started):
    """Starts a Prometheus that scrapes this port, and returns its address when it is ready."""
    scrape = {
        "job_name": "hapax",
        "authorization": {"credentials_file": str(folder / "key")},
        "static_configs": [{"targets": [f"127.0.0.1:{port}"], "labels": {"instance": INSTANCE}}],
    }
    interval = f"{SCRAPE_SECONDS}s"
    config = {"global": {"scrape_interval": interval, "scrape_timeout": interval}, "scrape_configs": [scrape]}
    # JSON is YAML, too.
    (folder / "prometheus.yml").write_text(json.dumps(config))
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    options = {"config.file": folder / "prometheus.yml", "storage.tsdb.path": folder / "prometheus",
               "web.listen-address": address, "log.level": "error"}
    prometheus = subprocess.Popen(["prometheus", *(f"--{name}={value}" for name, value in options.items())])
    started.callback(stop, prometheus)
    for _ in range(300):
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{address}/-/ready", timeout=5):
            return f"http://{address}"
        time.sleep(0.1)
    raise draw.Fault("prometheus did not start")


def stop(process):
    """Stops a process that was started here."""
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Client:
    """Sends requests, each over a connection of its own."""

    def __init__(self, port, key):
        self.port, self.key = port, key

    def send(self, method, path, body, key=None, kind="application/json"):
        """Returns the status of the answer. The body is an object, a text, or an iterator over parts of the body."""
        headers = {"content-type": kind}
        if key != "":
            headers["authorization"] = f"Bearer {key or self.key}"
        if isinstance(body, dict):
            body = json.dumps(body)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status

    def must(self, method, path, body):
        status = self.send(method, path, body)
        if status >= 300:
            raise draw.Fault(f"{method} {path} was answered with {status}")


def text(words, seed):
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def golden_pair(number):
    """Returns two texts of 400 words, of which up to 11 differ. They are labelled by their similarity: from 0.8 on, they
    are duplicates."""
    words, replaced = text(400, number).split(), number % 12
    others = words.copy()
    for at in range(replaced):
        others[10 + 30 * at] = "replaced"
    # Each word is in five of the 396 shingles.
    similarity = (396 - 5 * replaced) / (396 + 5 * replaced)
    return {"a": " ".join(words), "b": " ".join(others), "duplicate": similarity >= 0.8}


def send_others(client, load, seconds):
    """Sends requests that the load test does not send, until the load test ends."""
    check, begun, bulk = f"{COLLECTION}/check", time.monotonic(), []
    for number in range(seconds + 120):
        if load.poll() is not None:
            break
        client.send("POST", check, {"text": "no key"}, key="")
        client.send("POST", check, {"no": "text"})
        client.send("POST", check, {"text": text(5000, number)})
        client.send("GET", f"{COLLECTION}/documents?id=unknown", "")
        if number % 3 == 0:
            client.send("POST", check, {"text": "a wrong key"}, key="wrong")
        if not bulk and time.monotonic() >= begun + BULK_FROM * seconds:
            end = begun + BULK_TO * seconds
            bulk = [threading.Thread(target=send_bulk, args=(client, end)) for _ in range(BULK_CLIENTS)]
            for thread in bulk:
                thread.start()
        time.sleep(1)
    for thread in bulk:
        thread.join()


def send_bulk(client, end):
    """Sends slow bulk requests one after another until `end`."""
    while time.monotonic() < end:
        with contextlib.suppress(OSError, http.client.HTTPException):
            client.send("POST", f"{COLLECTION}/bulk?op=check", slow_lines(), kind="application/x-ndjson")
        time.sleep(0.5)


def slow_lines():
    for number in range(10):
        yield json.dumps({"text": text(100, number)}).encode() + b"\n"
        time.sleep(0.03)


if __name__ == "__main__":
    sys.exit(main())
