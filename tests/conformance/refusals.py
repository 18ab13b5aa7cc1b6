"""The refusals of a server that is overloaded, or whose memory is used up. Requests that are sent one at a time never
get these refusals."""

import socket
import urllib.parse

import requests
import schemathesis

# With these settings, one stream takes all places, and the memory has no room for a document.
SETTINGS = {"HAPAX__SERVER__BULK_REQUESTS_MAX": "1", "HAPAX__LIMITS__MEMORY_MAX_BYTES": "1"}
BULK = "/v1/collections/{collection}/bulk"
INSERT = "/v1/collections/{collection}/documents"
LINE = b'{"id": "a", "text": "a"}\n'
WAIT_SECONDS = 30


def faults(address, description):
    """Returns what is wrong with the refusals."""
    schemathesis.checks.load_all_checks()
    schema = schemathesis.openapi.from_path(description)
    stream = begin_stream(address)
    try:
        busy = post(address, schema, BULK, "application/x-ndjson", 503, "overloaded")
    finally:
        stream.close()
    return busy + post(address, schema, INSERT, "application/json", 507, "memory_budget_reached")


def begin_stream(address):
    """Returns the connection of a bulk request whose answer has begun."""
    parts = urllib.parse.urlsplit(address)
    connection = socket.create_connection((parts.hostname, parts.port), timeout=WAIT_SECONDS)
    head = [
        f"POST {BULK.format(collection='default')}?op=check HTTP/1.1",
        f"host: {parts.netloc}",
        "content-type: application/x-ndjson",
        f"content-length: {len(LINE) + 1}",
    ]
    connection.sendall("\r\n".join([*head, "", ""]).encode() + LINE)
    assert connection.recv(12) == b"HTTP/1.1 200"
    return connection


def post(address, schema, path, content_type, status, code):
    url = f"{address}{path.format(collection='default')}" + ("?op=check" if path == BULK else "")
    answer = requests.post(url, data=LINE, headers={"Content-Type": content_type}, timeout=WAIT_SECONDS)
    if answer.status_code != status or answer.json()["code"] != code:
        return [f"POST {path}: {answer.status_code} in place of {status} `{code}`: {answer.text[:500]}"]
    try:
        case = schema[path]["POST"].Case(path_parameters={"collection": "default"})
        # Only these checks are used, because Schemathesis does not know why the request is refused.
        case.validate_response(answer, checks=schemathesis.checks.CHECKS.get_by_names(CHECKS))
    except Exception as failure:
        return [f"POST {path}: {failure}"]
    return []


CHECKS = [
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
]
