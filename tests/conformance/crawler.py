"""Crawls a generated site twice with Scrapy and the pipeline of contrib/scrapy, against a real server.

Usage: crawler.py BINARY

Between the two is a front that now and then refuses a request, or cuts it off after the server has answered, so that the
pipeline has to send pages again.
"""

import argparse
import collections
import http.client
import http.server
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.parse

import access
from server import start, stop

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PIPELINE = ROOT / "contrib/scrapy"
COLLECTION = "pages"
SEED = 7
PAGES = 30
# A copy under another address with another menu, by the page that it copies.
COPIES = {3: 0, 11: 4, 17: 4, 25: 20}
# The pages that have another text at the second crawl, and those that have another menu only.
CHANGED, OTHER_MENU = {2, 9}, {6}
# How the front treats some of the requests, by their number.
FAULTS = {1: 503, 3: 429, 5: "cut", 7: 408, 34: "cut", 36: 503}

SPIDER = """
import scrapy

class Site(scrapy.Spider):
    name = "site"

    def parse(self, response):
        if "/page/" in response.url:
            yield {"url": response.url, "html": response.text, "body": response.body}
        yield from response.follow_all(css="a")
"""


def words(*seed):
    """Returns a text that follows from the seed and resembles no other."""
    source = random.Random(f"{SEED}{seed}")
    return " ".join(f"w{source.randrange(10**6)}" for _ in range(150)) + "."


def page(at, crawl):
    """Returns the HTML of a page at a crawl."""
    text = words(COPIES.get(at, at), crawl if at in CHANGED else 0)
    menu = words("menu", at, crawl if at in OTHER_MENU else 0)[:60]
    head = f"<html><head><title>Page {at}</title></head><body><nav><ul><li>{menu}</li></ul></nav>"
    return f"{head}<article><h1>Page {at}</h1><p>{text}</p></article></body></html>"


class Site(http.server.BaseHTTPRequestHandler):
    crawl = 1

    def do_GET(self):
        name = self.path.removeprefix("/page/")
        if self.path == "/":
            body = "".join(f'<a href="/page/{at}">{at}</a>' for at in range(PAGES))
        elif name.isdigit() and int(name) < PAGES:
            body = page(int(name), Site.crawl)
        else:
            return self.send_error(404)
        body = body.encode()
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Front(http.server.BaseHTTPRequestHandler):
    server_address = None
    lock = threading.Lock()
    number = 0
    met = collections.Counter()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        with Front.lock:
            Front.number += 1
            fault = FAULTS.get(Front.number)
            Front.met[fault] += 1
        if isinstance(fault, int):
            self.send_response(fault)
            if fault != 408:
                self.send_header("retry-after", "1")
            self.send_header("content-length", "0")
            return self.end_headers()
        connection = http.client.HTTPConnection(Front.server_address)
        headers = {name: self.headers[name] for name in ["content-type", "authorization"]}
        connection.request("POST", self.path, body, headers)
        answer = connection.getresponse()
        made = answer.read()
        if fault == "cut":
            # The page is stored, but the client does not learn it.
            return self.connection.close()
        self.send_response(answer.status)
        self.send_header("content-type", answer.headers["content-type"])
        self.send_header("content-length", str(len(made)))
        self.end_headers()
        self.wfile.write(made)

    def log_message(self, *_):
        pass


def serve(handler):
    """Returns the address of a server with this handler."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"127.0.0.1:{server.server_port}"


def crawl(folder, site, front, name):
    """Crawls the site. Returns the items by the number of their page, and the log."""
    out = folder / f"{name}.jsonl"
    settings = {
        "ITEM_PIPELINES": json.dumps({"hapax_pipeline.HapaxPipeline": 100}),
        "HAPAX_URL": f"http://{front}",
        "HAPAX_COLLECTION": COLLECTION,
        "HAPAX_KEY": access.ALL.text,
        "HAPAX_CRAWL": name,
        # One page after another in order of the links, so that the first of two copies is the original.
        "CONCURRENT_REQUESTS": "1",
        "CONCURRENT_ITEMS": "1",
        "DOWNLOAD_DELAY": "0",
        "ROBOTSTXT_OBEY": "False",
        "TELNETCONSOLE_ENABLED": "False",
        "LOG_LEVEL": "INFO",
    }
    options = [option for name, value in settings.items() for option in ("-s", f"{name}={value}")]
    (folder / "site_spider.py").write_text(SPIDER)
    command = [sys.executable, "-m", "scrapy", "runspider", "site_spider.py", "-o", out, *options]
    environment = {**os.environ, "PYTHONPATH": str(PIPELINE)}
    arguments = ["-a", f"start_url=http://{site}/"]
    ran = subprocess.run(
        [*command, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    items = [json.loads(line) for line in out.read_text().splitlines()]
    return {int(item["url"].rsplit("/", 1)[1]): item for item in items}, ran.stderr


def outcomes(items):
    return {at: item["hapax"]["outcome"] for at, item in items.items()}


def try_it(folder, address):
    Front.server_address = urllib.parse.urlsplit(address).netloc
    site, front = serve(Site), serve(Front)
    originals = [at for at in range(PAGES) if at not in COPIES]

    first, log = crawl(folder, site, front, "first")
    assert sorted(first) == originals, (sorted(first), log)
    # A page whose answer was cut off was stored, and is unchanged when it is sent again.
    kinds = collections.Counter(outcomes(first).values())
    assert kinds == {"inserted": len(originals) - 1, "unchanged": 1}, kinds
    assert log.count("exact_duplicate of") == len(COPIES), log

    Site.crawl = 2
    second, log = crawl(folder, site, front, "second")
    assert sorted(second) == originals, (sorted(second), log)
    for at, item in second.items():
        verdict = item["hapax"]
        is_same = at not in CHANGED | OTHER_MENU
        allowed = {"replaced", "unchanged"} if at in CHANGED else {"updated", "unchanged"}
        assert verdict["outcome"] in allowed, (at, verdict)
        if is_same:
            # The label of the crawl is another, so the page is updated. Its capture is the first one.
            assert verdict["revisit"]["refers_to_uri"] == item["url"], verdict
        elif at in OTHER_MENU:
            assert "revisit" not in verdict or verdict["outcome"] == "unchanged", verdict
    assert Front.met[503] == 2 and Front.met[429] == Front.met[408] == 1 and Front.met["cut"] == 2, Front.met
    labels = read(address, f"/v1/collections/{COLLECTION}/labels")["labels"]
    counts = {f"{label['name']}:{label['value']}": label["documents"] for label in labels}
    assert counts == {"crawl:second": len(originals), "site:127.0.0.1": len(originals)}, counts


def read(address, path):
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(address).netloc)
    connection.request("GET", path, headers={"authorization": f"Bearer {access.ALL.text}"})
    return json.load(connection.getresponse())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=pathlib.Path)
    binary = parser.parse_args().binary.resolve()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hapax-crawler-"))
    (folder / "keys.toml").write_text(access.keys_file())
    server, address = start(binary, folder, {"HAPAX__AUTH__KEYS_FILE": str(folder / "keys.toml")})
    faults = []
    try:
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(address).netloc)
        headers = {"authorization": f"Bearer {access.ALL.text}", "content-type": "application/json"}
        connection.request("PUT", f"/v1/collections/{COLLECTION}", "{}", headers)
        assert connection.getresponse().status == 201
        try_it(folder, address)
        print("crawler: two crawls with contrib/scrapy, as its README says", flush=True)
    finally:
        faults += stop(server, folder)
    for fault in faults:
        print(f"crawler: {fault}", file=sys.stderr)
    if not faults:
        shutil.rmtree(folder)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
