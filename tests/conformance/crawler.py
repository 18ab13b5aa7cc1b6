"""Crawls a generated site twice with Scrapy and the pipeline of contrib/scrapy, against a real server.

Usage: crawler.py BINARY

A proxy (`Front`) between the pipeline and the server refuses some requests, and closes some connections after the
server has answered. The pipeline then has to send the page again.
"""

import argparse
import collections
import http.client
import http.server
import json
import os
import pathlib
import random
import re
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
# Pages that are copies, each with the page that it copies. A copy has another address and another menu.
COPIES = {3: 0, 11: 4, 17: 4, 25: 20}
# The pages that have another text at the second crawl, and the pages that have only another menu.
CHANGED, OTHER_MENU = {2, 9}, {6}
# The faults of the first requests for some pages, by crawl and page: a status, or a closed connection.
FAULTS = {(1, 1): 503, (1, 5): 429, (1, 7): "cut", (1, 8): 408, (2, 12): "cut", (2, 13): 503}

SPIDER = """
import scrapy

class Site(scrapy.Spider):
    name = "site"

    def __init__(self, start_url):
        super().__init__()
        self.start_urls = [start_url]

    def parse(self, response):
        if "/page/" in response.url:
            yield {"url": response.url, "html": response.text, "body": response.body}
        yield from response.follow_all(css="a")
"""


def words(*seed):
    """Returns a text that depends only on the seed. Texts of different seeds are not similar."""
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
    left = dict(FAULTS)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        with Front.lock:
            fault = Front.left.pop((Site.crawl, number(json.loads(body)["id"])), None)
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
            # The page is stored, but the client gets no answer.
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
        "ROBOTSTXT_OBEY": "False",
        "TELNETCONSOLE_ENABLED": "False",
        "EXTENSIONS": '{"scrapy.extensions.remote_control.RemoteControl": null}',
        "LOG_LEVEL": "INFO",
        # Other fields of an item contain bytes, which JSON does not support.
        "FEED_EXPORT_FIELDS": "url,hapax",
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
    return {number(item["url"]): item["hapax"] for item in items}, ran.stderr


def number(url):
    return int(url.rsplit("/", 1)[1])


def try_it(folder, address):
    Front.server_address = urllib.parse.urlsplit(address).netloc
    site, front = serve(Site), serve(Front)

    first, log = crawl(folder, site, front, "first")
    # Of a page and its copies, only the one that comes first is kept.
    kept = collections.Counter(COPIES.get(at, at) for at in first)
    assert kept == {at: 1 for at in range(PAGES) if at not in COPIES}, (kept, log)
    assert len(re.findall("Dropped: (?:exact|near)_duplicate of http", log)) == len(COPIES), log
    for at, verdict in first.items():
        # If the answer for a page was lost, the pipeline has sent the page again.
        expected = "unchanged" if FAULTS.get((1, at)) == "cut" else "inserted"
        assert verdict["outcome"] == expected, (at, verdict)

    Site.crawl = 2
    second, log = crawl(folder, site, front, "second")
    assert sorted(second) == sorted(first), (sorted(second), log)
    assert len(re.findall("Dropped: (?:exact|near)_duplicate of http", log)) == len(COPIES), log
    for at, verdict in second.items():
        # Every page with the same text as before gets another label, so its document is updated.
        expected = "replaced" if at in CHANGED else "unchanged" if FAULTS.get((2, at)) == "cut" else "updated"
        assert verdict["outcome"] == expected, (at, verdict)
        if at not in CHANGED | OTHER_MENU:
            assert number(verdict["revisit"]["refers_to_uri"]) == at, verdict
            assert verdict["revisit"]["refers_to_date"] < started(log), (verdict, log)
        else:
            assert "revisit" not in verdict, verdict
    assert not Front.left, f"the pipeline did not meet {Front.left}"
    labels = read(address, f"/v1/collections/{COLLECTION}/labels")["labels"]
    counts = {f"{label['name']}:{label['value']}": label["documents"] for label in labels}
    assert counts == {"crawl:second": len(second), "site:127.0.0.1": len(second)}, counts


def started(log):
    """Returns when a crawl began, in UTC."""
    year, month, day, *time = re.search(r"'start_time': datetime\.datetime\(([\d, ]+),", log)[1].split(", ")
    hour, minute, second = (time + ["0", "0"])[:3]
    return f"{year}-{int(month):02}-{int(day):02}T{int(hour):02}:{int(minute):02}:{int(second):02}Z"


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
