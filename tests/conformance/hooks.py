"""Hooks of Schemathesis: better requests, the lines of bulk requests and of their answers, the refusals of good
requests that openapi.yaml explains in words, and every request once more with another key."""

import atexit
import collections
import itertools
import json
import os
import pathlib
import re

import access
import requests
import schemathesis
from refine import refine
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.core.transport import Response
from schemathesis.openapi.checks import RejectedPositiveData, UseAfterFree

# What the key of a request is, by the mode of run.py.
KEY = {"none": None, "keys": access.ALL, "verdict": access.VERDICT}[os.environ["HAPAX_CONFORMANCE_MODE"]]
NO_KEY = access.Key("none", known=False)
CONFORMANCE = schemathesis.checks.CHECKS.get_by_names(
    [
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
    ]
)

# Why a request that fits the schemas may get 422, as `field: detail`. openapi.yaml says each in words, because a schema
# of OpenAPI 3.0 cannot: two parameters that exclude each other, a limit that depends on the collection, and so on.
EXPLAINED = [
    # Parameters and fields that depend on each other.
    r"\w+: cannot be combined with .*",
    r"banding_by_hand: must be true or absent if `banding` is given",
    r"(id|date|payload_digest): must be a field of the JSON document; .*",
    # A pattern cannot say which months have 31 days.
    r"date: must be a time in UTC as in WARC-Date, .*",
    r"confirm: must be the collection's name, .*",
    r"cursor: is not a cursor from a page of (this kind|labels|reports)",
    # Documents are deleted by one of the two, and a collection is not merged into itself.
    r"id: is required, or `label` to delete all documents with a label",
    r"from: is the collection itself; .*",
    # A job has a number below 2^64, and only merges have reports.
    r"job: must be .*",
    # Names and values of labels have lengths in bytes, and names may not be repeated.
    r"(label|labels|scope)(\..*)?: a (label|document|scope)\b.*",
    r"with: `text` needs an `id`; .*",
    r"with: must be `none` in this collection: .*",
    r"name: is required with `keep`, because it names the series",
    r"verify: `(borderline|exact)` compares shingles, so `keep` must be shingles or text",
    r"keep: must be `signature` with an external spec, .*",
    r"s_(lo|bg): must be less than s_hi, .*",
    r"banding: \d+ bands of \d+ rows need more than the \d+ slots of a signature; .*",
    r"recall: no banding with recall .* keeps to candidates_max .*",
    r"recall: no banding of k=\d+ slots reaches recall .*",
    # A text/plain document has its id in the query; a check and `sign` do without.
    r"id: is required to store a document",
    r"[ab]: the document is empty: it has no shingle to compare",
    r"html: collection `\w+` has the external spec .* and only takes signatures",
    r"pairs: collection `\w+` has the external spec .* and only takes signatures",
    r"pairs: `[ab]` of pair \d+ has no shingle to compare",
    # 0 is never, and no time is shorter than a second.
    r"ttl: must be between 1 and \d+ seconds, .*",
    r"html: is required; only pages are extracted",
    # A list of other collections must not name that of the path, nor one twice.
    r"collections: names `[a-z0-9_-]+`, which is asked anyway, as the first",
    r"collections: names `[a-z0-9_-]+` twice",
    # A signature fits the collection that it was made for.
    r"fingerprint: is required with a signature, .*",
]


@schemathesis.hook
def before_load_schema(context, raw_schema):
    refine(raw_schema)


@schemathesis.hook
def map_body(context, body):
    """Writes `3.0` as `3`. To JSON Schema both are the same integer; the server takes the second alone."""
    return whole(body)


def whole(value):
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [whole(item) for item in value]
    if isinstance(value, dict):
        return {name: whole(item) for name, item in value.items()}
    return value


@schemathesis.serializer("application/x-ndjson")
def to_lines(context, value):
    if isinstance(value, bytes):
        return value
    lines = value if isinstance(value, list) else [value]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


@schemathesis.deserializer("application/x-ndjson")
def from_lines(context, response):
    return [json.loads(line) for line in response.content.split(b"\n") if line]


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Returns whether the failure counts."""
    if isinstance(failure, RejectedPositiveData) and response.status_code == 403 and KEY is access.VERDICT:
        # `keys_are_obeyed` knows when it must be.
        return False
    if isinstance(failure, RejectedPositiveData) and response.status_code == 422:
        errors = response.json().get("errors", [])
        reasons = [f"{error['field']}: {error['detail']}" for error in errors]
        return not reasons or not all(any(re.fullmatch(rule, reason) for rule in EXPLAINED) for reason in reasons)
    if isinstance(failure, AcceptedNegativeData) and (is_page(case) or faulty_alone(case, response)):
        # The parameters must be refused.
        return any(
            location.name != "BODY" and component.mode.is_negative
            for location, component in case.meta.components.items()
        )
    # Documents have no path of their own: the one that is read after a deletion is usually another one.
    if isinstance(failure, UseAfterFree):
        return not failure.free.endswith("/documents")
    return True


def is_page(case):
    """Whether the body is HTML, which no bytes are not."""
    return case.media_type in ("text/html", "application/xhtml+xml")


def faulty_alone(case, response):
    """Whether a fault in the body may have been answered with 200: a faulty line or document gets an error of its own."""
    operation = case.operation.definition.raw["operationId"]
    return operation == "bulk" or operation == "batch" and response.json()["summary"]["errors"] > 0


@schemathesis.check
def bulk_answers(context, response, case):
    """An answer has a line for each document, in order, and ends with a summary of them."""
    if case.operation.definition.raw["operationId"] != "bulk" or response.status_code != 200:
        return
    *lines, last = from_lines(None, response)
    sent = [line for line in (response.request.body or b"").split(b"\n") if line.strip(b" \t\r\x0b\x0c")]
    assert [line["line"] for line in lines] == list(range(1, len(sent) + 1)), "one line for each document, in order"
    assert last["kind"] == "summary", f"the last line is a {last['kind']}"
    for line in lines:
        expected = {"verdict": "verdict", "deleted": "deleted", "error": "error"}.get(line["kind"])
        assert expected in line, f"a line of kind {line['kind']}: {line}"
        assert line["kind"] != "error" or 400 <= line["error"]["status"] < 500, f"{line}"
    counted = last["summary"]
    assert last["lines"] == len(sent) == counted["documents"]
    assert counted["errors"] == sum(line["kind"] == "error" for line in lines)
    assert counted["deleted"] == sum(line.get("deleted", 0) for line in lines)
    for kind in ["unique", "near_duplicate", "exact_duplicate", "empty"]:
        assert counted[kind] == sum(line.get("verdict") == kind for line in lines), kind
    assert counted["stored"] == sum(line.get("stored", False) for line in lines)


@schemathesis.check
def batch_answers(context, response, case):
    """An answer has a result for each document, and its summary counts them."""
    if case.operation.definition.raw["operationId"] != "batch" or response.status_code != 200:
        return
    answer = response.json()
    results, counted = answer["results"], answer["summary"]
    assert len(results) == len(json.loads(response.request.body)["documents"]) == counted["documents"]
    assert counted["errors"] == sum("error" in result for result in results)
    assert counted["stored"] == sum(result.get("stored", False) for result in results)


# Operations and the statuses and verdicts that they were met with; run.py knows what must be met.
met = set()
met_file = pathlib.Path("met.json")
atexit.register(lambda: met_file.write_text(json.dumps(sorted(met))))
# Each operation gets each key in turn.
others = collections.defaultdict(lambda: itertools.cycle(access.OTHERS))
# A key that sees only verdicts may not send these.
hidden = itertools.cycle(["threshold=0.5", "limit=3", "with=metadata"])
session = requests.Session()
session.trust_env = False


@schemathesis.check
def keys_are_obeyed(context, response, case):
    """What a key may do and see is as openapi.yaml and docs/keys.md say, and so is the answer to another key."""
    if KEY is None:
        return
    shown = response.request.headers.get("Authorization") == f"Bearer {KEY.text}"
    judged(KEY if shown else NO_KEY, response, case)
    if KEY is access.ALL:
        other = next(others[case.operation.label])
        # Twice, so that a limit is reached.
        for _ in range(2 if other.limits else 1):
            again(other, response.request.url, response, case)
    elif shown and response.status_code == 200 and case.operation.definition.raw["operationId"] in access.COARSE:
        url = response.request.url
        answer = again(KEY, f"{url}{'&' if '?' in url else '?'}{next(hidden)}", response, case)
        assert answer.status_code in (403, 422), f"{answer.status_code} to a key that sees only verdicts: {url}"


def judged(key, response, case):
    definition = case.operation.definition.raw
    exchange = access.Exchange(definition, case.operation.path, case.operation.method.upper(), response)
    met.add(f"{exchange.operation} {exchange.status}")
    met.update(re.findall(r'"verdict":"(\w+)"', response.content.decode(errors="replace")))
    fault = access.judge(key, exchange)
    sent = response.request
    assert fault is None, f"key `{key.name}`: {fault}; {sent.method} {sent.url}: {response.content[:500]}"


def again(key, url, response, case):
    """Sends the same bytes again, with this key."""
    request = response.request.copy()
    request.url = url
    request.headers["Authorization"] = f"Bearer {key.text}"
    answer = Response.from_requests(session.send(request, timeout=30, allow_redirects=False), verify=False)
    case.validate_response(answer, checks=CONFORMANCE)
    judged(key, answer, case)
    return answer
