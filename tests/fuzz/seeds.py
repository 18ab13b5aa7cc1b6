"""Writes the first inputs of each fuzz target, and a dictionary of the words that it knows: seeds.py FOLDER

The inputs come from config/default.toml and openapi.yaml, so that nobody keeps them up to date by hand.
"""

import gzip
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HASH = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def main():
    folder = pathlib.Path(sys.argv[1])
    defaults = (ROOT / "config/default.toml").read_text()
    description = (ROOT / "openapi.yaml").read_text()
    settings = re.sub(r"(?m)^#.*\n", "", defaults)
    keys = re.findall(r"(?m)^(?:# )?([a-z_]+) =", defaults)
    fields = sorted(set(re.findall(r"(?m)^ +([a-z_]+):$", description)))
    documents = [
        b'{"id":"a","text":"some words of the first page"}',
        b'{"set":["apple","pear",12],"metadata":{"n":[1,null]}}',
        b'{"signature":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw=="}',
        b'{"text":"\\ud800 \xc3\xa9"}',
        b'{"id":""}',
        b"[1]",
    ]
    key = f'version = 1\n[[key]]\nname = "n"\nid = "i"\nsha256 = "{HASH}"\nscopes = ["check", "sign"]\n'
    rest = 'collections = ["pages", "crawl-*"]\nexpires = "2027-11-22T10:00:00+01:00"\nscores = "verdict"\n'
    verdict = b'{"verdict":"unique","threshold":0.8,"candidates":1,"complete":true,"matches":[{"seq":1,"matching":2,"exact":true}]}'
    inputs = {
        "lines": [b"\x01" + b"\n".join(documents), b"\x00\xef\xbb\xbf" + documents[0] + b"\r\n \n\n" + documents[1], b"\xff" + b"\n" * 110],
        "bodies": [bytes([how, route, 9, 40]) + body for how in range(6) for route, body in bodies(documents)],
        "pages": [bytes([how]) + page for how in (0, 1, 2, 128) for page in PAGES],
        "query": [b"id=a%2Fb+c&limit=10&threshold=0.5", b"with=metadata&cursor=AAAAAAAAAAE&duplex=true", b"&&id=%F0%9F%A6%80&x"],
        "config": [section.encode() for section in re.split(r"(?m)^(?=\[)", settings) if section.strip()]
        + [b"----\nSERVER__LISTEN=0.0.0.0:80\nAUTH__API_KEY=0123456789abcdef\nSERVER__HOSTS=a,b\n"],
        "keys": [key.encode(), (key + rest + "[key.limits]\nrequests_per_second = 5\n").encode(), b"version = 1\n"],
        "warc": archives(),
        "tables": [bytes([how]) + table for how in (0, 1, 2) for table in TABLES],
        "texts": [bytes([how]) + text for how in (0, 1, 2) for text in (b"\n\n".join(documents), b"\xef\xbb\xbf# Pears\n\nMany pears.", PAGES[0])],
        "rows": [path.read_bytes() for path in sorted((pathlib.Path(__file__).parent / "seeds").glob("*.parquet"))],
        "load": [path.read_bytes() for path in sorted((pathlib.Path(__file__).parent / "seeds").glob("*.parquet"))],
        "records": [bytes(range(256)) * 4 + verdict, b"\xff" * 600 + verdict],
    }
    for target, seeds in inputs.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for at, seed in enumerate(seeds):
            (folder / target / f"seed-{at}").write_bytes(seed)
        own = {"config": keys, "keys": KEY_WORDS, "pages": PAGE_WORDS, "query": keys_of_queries(description), "warc": WARC_WORDS, "load": LOAD_WORDS, "rows": LOAD_WORDS, "tables": TABLE_WORDS}
        words = own.get(target, fields)
        dictionary = "".join(f'"{word}"\n' for word in sorted(set(words)))
        (folder / f"{target}.dict").write_text(dictionary)


KEY_WORDS = """version key name id sha256 scopes collections created expires scores limits requests_per_second
bytes_per_second documents_per_second requests_in_flight check read insert delete admin metrics sign full verdict [[key]]
[key.limits]""".split()


LOAD_WORDS = """PAR1 hapax.spec hapax.fingerprint id signature content_hash shingles representative labels metadata verdict
first_seen""".split()


TABLES = [
    b'id,text,score,metadata\n1,"a ""b"", c\nd",2.5,"{""n"": [1]}"\r\n\n2,,+7,\n3,few\n,one,nan,none\n',
    b"\xef\xbb\xbfid;html;text;labels\r\n1;<p>a;;\r\n2;;b;{}\r\n3;<p>;\xff;\r\n4;a;b;c;d\r\n",
    b'text\tid\tset\n"open\t1\t\n\n"\ta\t"[1, ""x""]"\nlast\t"',
    b"text\n" + b"a b\n" * 40,
]

TABLE_WORDS = """id text html score metadata labels set , ; {} [1] <p> 1.5 \\x09 \\x0D \\x22""".split()


WARC_WORDS = """WARC/1.0 WARC-Type:response WARC-Type:resource WARC-Type:conversion WARC-Target-URI: Content-Length:
Content-Type: application/http text/html text/plain;charset=utf-16 HTTP/1.1 200 Content-Encoding:gzip Content-Encoding:br
Content-Encoding:deflate Content-Encoding:zstd Transfer-Encoding:chunked 99999999999""".split()


def archives():
    page = b"<p>The quick brown fox jumps over the lazy dog.</p>"
    http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(page), page)
    packed = gzip.compress(page, mtime=0)
    records = [
        record(b"warcinfo", b"application/warc-fields", b"software: seeds\r\n"),
        record(b"response", b"application/http", http + b"\r\n" + page),
        record(b"response", b"application/http", http + b"Transfer-Encoding: chunked\r\n\r\n" + chunks),
        record(b"response", b"application/http", http + b"Content-Encoding: gzip\r\n\r\n" + packed),
        record(b"resource", b"text/html", page),
        record(b"conversion", b"text/plain", b"caf\xc3\xa9 " * 9),
    ]
    return [b"".join(records), b"".join(gzip.compress(one, mtime=0) for one in records), *records]


def record(kind, media_type, block):
    return b"WARC/1.0\r\nWARC-Type: %s\r\nWARC-Target-URI: http://a.example/\r\nWARC-Date: 2026-11-01T10:00:00Z\r\n" \
        b"Content-Type: %s\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n" % (kind, media_type, len(block), block)


PAGES = [
    b"<!DOCTYPE html><html lang=en><title>A &amp; B</title><nav><a href=/>Home</a></nav><main><h1>Pears</h1><p>Pears are"
    b" eaten by people who like pears, and by others who like apples more but have none.</main><footer>2026</footer>",
    b"<TABLE><TR><TD><A HREF=x>Menu</A><TD><P>Pears<P>Apples<UL><LI>a<LI>b</UL></TABLE>&nbsp;&#x1F350;&bogus;<!-- <p> -->",
    b"<meta charset=windows-1251><script>if (a < b) '</p>'</script><pre>\xcf\xf0\n\n</pre><svg><title>x</title></svg>",
    b"<?xml version='1.0' encoding='utf-8'?><html xml:lang='de'><body><a name='x'/><div class='sidebar'/>Text</body></html>",
]

PAGE_WORDS = """<div> </div> <p> <b> </b> <a href=x> </a> <table> <tr> <td> </table> <li> <ul> </ul> <script> </script>
<title> </title> <main> </main> <article> <nav> </nav> <pre> <template> <svg> <plaintext> <textarea> <select> <option>
<!-- --> <![CDATA[ &amp; &nGt; class=menu class=content hidden id=footer role=main <h1> <br>""".split()


def bodies(documents):
    text = "The quick brown fox jumps over the lazy dog.".encode()
    yield from [(0, documents[0]), (2, b"\xef\xbb\xbf" + text), (2, text + b"\xff\xed\xa0\x80"), (4, documents[1])]
    yield from [(5, b'{"a":{"text":"a"},"b":{"id":"a"}}'), (6, b'{"op":"check","documents":[{"text":"a"},{"id":"b"}]}')]
    yield from [(7, b'{"ids":["a"]}'), (10, b'{"threshold":0.7,"k":128}'), (0, gzip.compress(documents[0], mtime=0))]


def keys_of_queries(description):
    return re.findall(r"(?m)^      name: ([a-z_]+)$", description) + ["%00", "%F0%9F", "+", "&", "="]


if __name__ == "__main__":
    main()
