"""Writes WARC files with warcio, imports them, and writes revisit records by the answers of a real server.

Usage: revisits.py BINARY

A crawl of pages is written as responses and imported. The next crawl asks the server about each page. If the answer has
a `revisit`, it writes a revisit record, and otherwise a response. warcio must find the file of this crawl valid.
"""

import argparse
import http.client
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

from server import start, stop
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

FIRST, SECOND = "2026-11-01T10:00:00.123456Z", "2026-11-22T08:30:00Z"
PROFILE = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"


def text(at):
    return " ".join(f"word{at}x{number}" for number in range(120))


def html(at, menu="home"):
    return f"<html><body><nav>{menu}</nav><article><p>{text(at)}</p></article></body></html>".encode()


HEADER = StatusAndHeaders("200 OK", [("Content-Type", "text/html; charset=utf-8")], protocol="HTTP/1.1")
FIRST_CRAWL = {f"https://a.example/{at}": html(at) for at in range(4)}
SECOND_CRAWL = {
    # The same bytes at the same address, the same bytes at another address, the same text in other bytes, and a new
    # text.
    "https://a.example/0": html(0),
    "https://b.example/mirror": html(1),
    "https://a.example/2": html(2, "home and more"),
    "https://a.example/new": html(9),
}
REFERS_TO = {"https://a.example/0": "https://a.example/0", "https://b.example/mirror": "https://a.example/1"}


def response(writer, uri, date, body):
    record = writer.create_warc_record(
        uri, "response", payload=io.BytesIO(body), http_headers=HEADER, warc_headers_dict={"WARC-Date": date}
    )
    # warcio computes the digests when it writes a record, but the request to the server needs them earlier.
    writer.ensure_digest(record, block=False, payload=True)
    return record


def ask(address, uri, body, digest):
    query = urllib.parse.urlencode({"id": uri, "payload_digest": digest})
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(address).netloc)
    path = f"/v1/collections/default/check?{query}"
    connection.request("POST", path, body, {"content-type": "text/html; charset=utf-8"})
    answer = connection.getresponse()
    verdict = json.load(answer)
    assert answer.status == 200, verdict
    return verdict.get("revisit")


def crawl_again(folder, address):
    """Writes the second crawl. Returns its file."""
    path = folder / "second.warc.gz"
    with open(path, "wb") as out:
        writer = WARCWriter(out, gzip=True, warc_version="1.1")
        for uri, body in SECOND_CRAWL.items():
            record = response(writer, uri, SECOND, body)
            digest = record.rec_headers.get_header("WARC-Payload-Digest")
            revisit = ask(address, uri, body, digest)
            if revisit is None:
                writer.write_record(record)
                continue
            record = writer.create_revisit_record(
                uri,
                digest,
                revisit["refers_to_uri"],
                revisit["refers_to_date"],
                http_headers=HEADER,
                warc_headers_dict={"WARC-Date": SECOND},
            )
            # warcio sets the profile by itself.
            assert record.rec_headers.get_header("WARC-Profile") == revisit["profile"], revisit
            writer.write_record(record)
    return path


def expect(folder, path):
    """Reads a file back, and compares each record with the expected one."""
    seen = {}
    with open(path, "rb") as file:
        for record in ArchiveIterator(file, check_digests="raise"):
            field = record.rec_headers.get_header
            seen[field("WARC-Target-URI")] = record.rec_type
            if record.rec_type == "revisit":
                uri = field("WARC-Target-URI")
                assert field("WARC-Refers-To-Target-URI") == REFERS_TO[uri], uri
                assert field("WARC-Refers-To-Date") == FIRST, field("WARC-Refers-To-Date")
                assert field("WARC-Profile") == PROFILE and field("WARC-Date") == SECOND
                assert field("WARC-Payload-Digest").startswith("sha1:")
                assert record.content_stream().read() == b""
    assert seen == {uri: "revisit" if uri in REFERS_TO else "response" for uri in SECOND_CRAWL}, seen
    checker = Checker(argparse.Namespace(inputs=[str(path)], verbose=True))
    checker.process_all()
    assert checker.exit_value == 0, "warcio check finds a fault"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=pathlib.Path)
    binary = parser.parse_args().binary.resolve()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hapax-revisits-"))
    server, address = start(binary, folder, {})
    try:
        first = folder / "first.warc.gz"
        with open(first, "wb") as out:
            writer = WARCWriter(out, gzip=True, warc_version="1.1")
            for uri, body in FIRST_CRAWL.items():
                writer.write_record(response(writer, uri, FIRST, body))
        subprocess.run([binary, "import", "--server", address, first], check=True, timeout=120)
        second = crawl_again(folder, address)
        expect(folder, second)
        # hapax reads only the two responses of the file, because a revisit record has no page.
        checked = subprocess.run([binary, "check", "--server", address, second], capture_output=True, timeout=120)
        found = [json.loads(line) for line in checked.stdout.splitlines()]
        assert [line["id"] for line in found] == [uri for uri in SECOND_CRAWL if uri not in REFERS_TO], found
        print("revisits: the records that warcio writes are valid", flush=True)
    finally:
        faults = stop(server, folder)
    for fault in faults:
        print(f"revisits: {fault}", file=sys.stderr)
    if not faults:
        shutil.rmtree(folder)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
