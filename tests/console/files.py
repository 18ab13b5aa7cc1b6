"""The files of the console, as the server sends them."""

import gzip
import http.client
import pathlib
import re
import urllib.parse

from world import check

FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "src/http/console"
BYTES_MAX = 250_000
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "connect-src": "'self'",
    "style-src": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}
VIEWS = ["try", "compare", "live", "collections", "collection", "clusters", "buckets", "quality", "operate"]


def fetch(server, path, method="GET", **headers):
    """Sends a request as it is. Returns the status, the headers and the body."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(server.begin().address).netloc, timeout=30)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def policy(headers):
    parts = [part.split(maxsplit=1) for part in headers["content-security-policy"].split(";")]
    return dict(parts)


@check("files: headers, tags, and no file without a use")
def headers(world):
    server, faults = world.keyed, []
    for name in [*VIEWS, "", *sorted(file.name for file in FOLDER.iterdir())]:
        status, fields, body = fetch(server, f"/console/{name}")
        kept = [fields.get(field) for field in ("x-content-type-options", "referrer-policy")]
        if status != 200 or kept != ["nosniff", "no-referrer"]:
            faults.append(f"{name}: {status} {fields}")
        elif any(policy(fields).get(directive) != value for directive, value in POLICY.items()):
            faults.append(f"{name}: {fields['content-security-policy']}")
        elif "unsafe" in fields["content-security-policy"]:
            faults.append(f"{name}: the policy allows something unsafe")
        again, same, rest = fetch(server, f"/console/{name}", if_none_match=fields["etag"])
        if (again, rest, same.get("etag")) != (304, b"", fields["etag"]):
            faults.append(f"{name}: {again} in place of 304, {same}")
        if fetch(server, f"/console/{name}", if_none_match='"another"')[2] != body:
            faults.append(f"{name}: another tag gets another body")
        if (FOLDER / (name or "-")).is_file() and body != (FOLDER / name).read_bytes():
            faults.append(f"{name}: the server sends another file")
    texts = {file.name: file.read_text() for file in FOLDER.iterdir()}
    for name in texts:
        if name not in ("index.html", "uplot-license.txt") and not any(f'{name}"' in text for text in texts.values()):
            faults.append(f"{name} is used by no other file")
    for path in ("/console/../console.rs", "/console/nothing.js", "/console/%2e%2e/console.rs", "/console/a/b"):
        if fetch(server, path)[0] not in (401, 404):
            faults.append(f"{path} is served")
    return faults


@check("files: all of them together are less than 250 kB after gzip")
def size(world):
    sizes = {file.name: len(gzip.compress(file.read_bytes(), 6)) for file in FOLDER.iterdir()}
    total = sum(sizes.values())
    print(f"    {total:,} bytes after gzip", flush=True)
    assert total < BYTES_MAX, sorted(sizes.items(), key=lambda one: -one[1])[:10]
    own = [file for file in FOLDER.iterdir() if not file.name.startswith("uplot")]
    hosts = {host for file in own for host in re.findall(r"https?://([\w.-]+)", file.read_text())}
    # A name space, and hosts of examples.
    foreign = [host for host in hosts if host != "www.w3.org" and not host.endswith("example")]
    assert not foreign, f"the files name other hosts: {foreign}"


@check("files: / leads a browser to the console, and tells others where the API is")
def root(world):
    browser = world.browser
    browser.open(f"{world.main.begin().address}/")
    assert browser.url == world.main.url("try"), browser.url
    browser.open(f"{world.main.address}/console")
    assert browser.url == world.main.url("try"), browser.url
    status, fields, body = fetch(world.main, "/", accept="*/*")
    assert status == 200 and fields["content-type"].startswith("text/plain"), (status, fields)
    assert b"/console" in body and b"openapi.yaml" in body, body


@check("files: a server without the console")
def hidden(world):
    for path in ("/console", "/console/", "/console/try", "/console/main.js"):
        status, _, body = fetch(world.hidden, path, accept="text/html")
        assert status == 404 and b"route_not_found" in body, (path, status, body)
    status, fields, body = fetch(world.hidden, "/", accept="text/html")
    assert status == 200 and fields["content-type"].startswith("text/plain"), (status, fields)
    assert b"openapi.yaml" in body and b"/console" not in body, body
