"""The keys of the servers under test, and the rights of each key by openapi.yaml and docs/keys.md.

`judge` compares one answer with these rights. This module does not depend on Schemathesis.
"""

import dataclasses
import hashlib
import json
import re
import urllib.parse

SCOPES = ["check", "read", "insert", "delete", "admin", "metrics", "sign", "explain", "load"]


@dataclasses.dataclass(frozen=True)
class Key:
    name: str
    scopes: tuple = tuple(SCOPES)
    collections: tuple = ()
    scores: str = "full"
    limits: tuple = ()
    expires: str | None = None
    # Whether the keys file contains this key.
    known: bool = True

    @property
    def text(self):
        return f"the-{self.name}-key-of-the-conformance-tests"

    @property
    def valid(self):
        return self.known and self.expires is None

    def may_use(self, collection):
        patterns = [name.replace("*", ".*") for name in self.collections]
        return not patterns or any(re.fullmatch(pattern, collection) for pattern in patterns)

    def toml(self, at):
        lines = [
            "[[key]]",
            f'name = "{self.name}"',
            f'id = "k{at}"',
            f'sha256 = "{hashlib.sha256(self.text.encode()).hexdigest()}"',
            f"scopes = {json.dumps(self.scopes)}",
            f'scores = "{self.scores}"',
        ]
        lines += [f"collections = {json.dumps(self.collections)}"] if self.collections else []
        lines += [f'expires = "{self.expires}"'] if self.expires else []
        lines += ["[key.limits]", *(f"{name} = {value}" for name, value in self.limits)] if self.limits else []
        return "\n".join(lines)


ALL = Key("all")
VERDICT = Key("verdict", ("check", "insert", "delete"), scores="verdict")
OTHERS = [
    Key("reader", ("read",)),
    Key("crawler", ("check", "insert"), ("default", "ex*")),
    Key("cleaner", ("delete", "sign")),
    Key("operator", ("admin", "metrics")),
    Key("loader", ("load",), ("ex*",)),
    Key("tenant", ("admin", "metrics", "read"), ("default", "links")),
    VERDICT,
    # The tests send one request at a time, so they never reach the last limit.
    Key(
        "limited",
        limits=(
            ("requests_per_second", 1),
            ("bytes_per_second", 400),
            ("documents_per_second", 2),
            ("requests_in_flight", 3),
        ),
    ),
    Key("expired", expires="2020-01-01T00:00:00Z"),
    Key("unknown", known=False),
]


def keys_file():
    keys = [key for key in [ALL, *OTHERS] if key.known]
    return "version = 1\n" + "\n".join(key.toml(at) for at, key in enumerate(keys)) + "\n"


# The operations that a key with `scores = "verdict"` may use, and then the parameters.
COARSE = {"checkDocument", "insertDocument", "deleteDocument", "deleteDocuments", "batch", "bulk"}
COARSE_PARAMETERS = {"id", "label", "on_duplicate", "on_existing", "invalid", "op", "extra", "duplex", "collections"}
# Such a key may also send these parameters with their defaults, because generated clients send them.
COARSE_DEFAULTS = {"limit": ["10"], "with": ["none"], "explain": ["false"], "page_metadata": ["false"]}
# The fields that such a key sees.
COARSE_FIELDS = {"verdict", "outcome", "stored", "complete", "collection", "id", "collections"}
# The fields that such a key sees of each collection, if it asks several.
COARSE_OF_EACH = {"collection", "verdict", "complete", "error"}
# Operations that concern all collections. A key that is only for some collections may not use them.
FOR_ALL = {"startBackup", "readBackups", "cancelBackup", "metrics"}
# Statuses of requests that are refused before their collection matters.
EARLIER = {400, 403, 408, 413, 415, 422}


class Exchange:
    """A request and its answer."""

    def __init__(self, definition, template, method, response):
        self.operation = definition["operationId"]
        self.security = definition.get("security", [])
        sent = urllib.parse.urlsplit(response.request.url)
        parts = re.fullmatch(re.sub(r"\{\w+\}", "([^/]+)", template), sent.path)
        # Some generated requests have a path or a method that does not belong to this operation.
        self.reached = parts is not None and response.request.method == method
        named = urllib.parse.unquote(parts[1]) if parts and parts.groups() else None
        # The name of a job begins with its collection.
        self.collection = named.split(".")[0] if named and "{job}" in template else named
        self.parameters = urllib.parse.parse_qs(sent.query, keep_blank_values=True)
        self.body = response.request.body or b""
        self.status = response.status_code
        self.headers = {name.lower(): ", ".join(values) for name, values in response.headers.items()}
        content = response.content
        problem = self.headers.get("content-type", "").startswith("application/problem+json")
        self.code = json.loads(content)["code"] if problem and content else None
        self.lines = [] if problem else [line for line in content.split(b"\n") if line]


def judge(key, exchange):
    """Returns the fault in the answer to this key; `None` if there is none."""
    status = exchange.status
    if not exchange.security:
        return f"{status} of a route that needs no key" if status in (401, 403) else None
    if not key.valid:
        return None if (status, exchange.code) == (401, "unauthorized") else f"{status} to a key that is not valid"
    if status == 401:
        return "401 to a valid key"
    fault = limits_shown(key, exchange)
    if fault or exchange.code in ("rate_limited", "route_not_found", "method_not_allowed"):
        return fault
    # The answer says only what the key of the request may do, so every key may ask.
    if not exchange.reached or exchange.operation == "readAccess":
        return None
    scopes = {scope for way in exchange.security for scope in way["key"]}
    if scopes and not scopes & set(key.scopes):
        return must_be_forbidden(exchange, f"without one of the scopes {sorted(scopes)}")
    if exchange.operation in FOR_ALL and key.collections:
        return must_be_forbidden(exchange, "for some collections only")
    if key.scores == "verdict" and exchange.operation not in COARSE:
        return must_be_forbidden(exchange, "that sees only verdicts")
    if exchange.collection is not None and not key.may_use(exchange.collection):
        return None if status in EARLIER else f"{status} to a key that is not for {exchange.collection!r}"
    others = exchange.parameters.get("collections", [])
    if status < 300 and any(not key.may_use(name) for listed in others for name in listed.split(",")):
        return f"{status} to a key that is not for all of {others}"
    reason = further(key, exchange)
    if reason and status < 300:
        return f"{status} to a key {reason}"
    if exchange.code == "forbidden" and not reason and set(key.scopes) == set(SCOPES):
        return "403 to a key that may do everything"
    return seen(exchange) if key.scores == "verdict" and status < 300 else None


def must_be_forbidden(exchange, why):
    return None if (exchange.status, exchange.code) == (403, "forbidden") else f"{exchange.status} to a key {why}"


def further(key, exchange):
    """Returns the reason if the request needs more rights than the scope of its route, and the key lacks them."""
    asked, missing = exchange.parameters, set(SCOPES) - set(key.scopes)
    more = {name for name, values in asked.items() if COARSE_DEFAULTS.get(name) != values} - COARSE_PARAMETERS
    if key.scores == "verdict" and more:
        return f"that sees only verdicts and asks for {sorted(more)}"
    if key.scores == "verdict" and exchange.operation == "deleteDocument" and "label" in asked:
        return "that sees only verdicts and deletes by label"
    if "read" in missing and asked.get("with") == ["metadata"]:
        return "without `read` that asks for metadata"
    if "explain" in missing and asked.get("explain") == ["true"]:
        return "without `explain` that asks for an explanation"
    if exchange.operation == "mergeCollection" and "read" in missing:
        return "without `read` that merges"
    if "delete" in missing and asked.get("on_existing") == ["replace"]:
        return "without `delete` that replaces"
    if exchange.operation == "bulk" and {*asked.get("op", [])} & missing:
        return f"without the scope of op={asked['op']}"
    try:
        body = json.loads(exchange.body)
    except ValueError:
        return None
    if not isinstance(body, dict):
        return None
    if exchange.operation == "mergeCollection":
        if "delete" in missing and body.get("on_existing") == "replace":
            return "without `delete` that replaces"
        if isinstance(body.get("from"), str) and not key.may_use(body["from"]):
            return "that is not for the other collection"
    if exchange.operation == "batch" and str(body.get("op")) in missing:
        return f"without the scope of a batch of {body['op']}"
    sides = [side for side in (body.get("a"), body.get("b")) if isinstance(side, dict)]
    if exchange.operation == "compare" and "read" in missing and any("id" in side for side in sides):
        return "without `read` that compares what is stored"
    if exchange.operation in ("checkDocument", "insertDocument", "compare") and "sign" in missing:
        if any(has_set(document) or "signature" in document for document in [body, *sides]):
            return "without `sign` that sends a set or a signature"
    return None


def has_set(document):
    """Whether a document has a set that counts. An empty set next to other content does not count."""
    return "set" in document and (document["set"] != [] or not {"text", "id"} & set(document))


def limits_shown(key, exchange):
    """Compares the header fields of draft-ietf-httpapi-ratelimit-headers-11 with the limits of the key."""
    policy, left = (exchange.headers.get(name) for name in ("ratelimit-policy", "ratelimit"))
    if not key.limits:
        limited = exchange.code == "rate_limited" or policy or left
        return "a key without limits is told of limits" if limited else None
    quotas = re.findall(r'(?:^|, )"(\w+)";q=(\d{1,15})(?:;qu="[a-z-]+")?(?:;w=1)?(?=,|$)', policy or "")
    rests = re.findall(r'(?:^|, )"(\w+)";r=(\d{1,15})(?:;t=\d{1,15})?(?=,|$)', left or "")
    if tuple((name, int(quota)) for name, quota in quotas) != key.limits:
        return f"RateLimit-Policy {policy!r} is not {key.limits}"
    if [name for name, _ in rests] != [name for name, _ in key.limits]:
        return f"RateLimit {left!r} is not of {key.limits}"
    if any(int(rest) > quota for (_, rest), (_, quota) in zip(rests, key.limits)):
        return f"RateLimit {left!r} leaves more than {key.limits}"
    retry = exchange.headers.get("retry-after", "")
    if exchange.code == "rate_limited" and not (exchange.status == 429 and re.fullmatch(r"[1-9]\d*", retry)):
        return f"rate_limited with {exchange.status} and Retry-After {retry!r}"
    return None


# The fields of the lines that end a bulk answer, and then the fields of all other answers.
LAST = {"summary": {"kind", "lines", "summary"}, "fatal": {"kind", "line", "error"}}
OF_DOCUMENTS = COARSE_FIELDS | {"kind", "line", "deleted", "error"}


def seen(exchange):
    """Returns a fault if the answer has fields that the key must not see; `None` if it has none."""
    for line in exchange.lines:
        answer = json.loads(line)
        results = answer["results"] if exchange.operation == "batch" else [answer]
        if exchange.operation == "batch":
            more = set(answer) - {"summary", "results"}
            more |= {field for result in results for field in result} - OF_DOCUMENTS
        else:
            more = set(answer) - LAST.get(answer.get("kind"), OF_DOCUMENTS)
        each = [said for result in results for said in result.get("collections", [])]
        more |= {field for said in each for field in said} - COARSE_OF_EACH
        if more:
            return f"a key that sees only verdicts sees {sorted(more)}"
    return None
