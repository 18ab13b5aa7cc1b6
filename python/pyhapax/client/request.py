"""The parts of a request: method, path, query, body, and how its answer is read.

Each operation of openapi.yaml has a function that makes a request, in document_requests.py or server_requests.py. Sends
nothing.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

from pyhapax.client.decode import decode

T = TypeVar("T")
Words = str | Sequence[str]
"""One word, or several."""


# From this number of characters on, a text is long. A body of JSON may have 16 MiB.
LONG_TEXT = 1 << 20


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """A request whose answer is a T.

    `repeatable` says whether the request may be sent again if it is unknown whether the server has done it. `retried`
    says whether it is sent again at all. The body is either in memory or in `file`, which is opened for each attempt.
    """

    method: str
    path: str
    read: Callable[[bytes], T]
    body: bytes | None = None
    content_type: str | None = None
    file: Path | None = None
    repeatable: bool = True
    retried: bool = True


def request(
    answer: type[T],
    method: str,
    path: str,
    *,
    query: Mapping[str, object] | None = None,
    body: Mapping[str, object] | None = None,
    repeatable: bool = True,
) -> Request[T]:
    """Return a request with a JSON body or no body, and an answer in JSON. Values that are None are left out."""
    encoded = None if body is None else to_json(given(body))
    kind = None if body is None else "application/json"
    return Request(
        method,
        path + to_query(query),
        lambda data: decode(answer, json.loads(data)),
        encoded,
        kind,
        repeatable=repeatable,
    )


def raw(answer: type[T], path: str, content: str | bytes, kind: str, query: Mapping[str, object]) -> Request[T]:
    """Return a POST whose body is the content itself. A str is sent as UTF-8."""
    if isinstance(content, str):
        content, kind = content.encode(), f"{kind}; charset=utf-8"
    return Request("POST", path + to_query(query), lambda data: decode(answer, json.loads(data)), content, kind)


def upload(answer: type[T], path: str, file: str | PathLike[str], kind: str) -> Request[T]:
    """Return a POST whose body is a file of any length. The answer may take as long as the work on the file."""
    return Request(
        "POST", path, lambda data: decode(answer, json.loads(data)), None, kind, file=Path(file), repeatable=False
    )


def of_text(answer: type[T], path: str, body: Mapping[str, object], query: Mapping[str, object]) -> Request[T]:
    """Return a request about a document that is only read.

    The server takes a long text only as the whole body. Then other fields can only be parameters of the query.
    """
    fields = given(body)
    text = fields.get("text")
    if isinstance(text, str) and len(text) > LONG_TEXT and fields.keys() <= {"text", "id", "payload_digest"}:
        del fields["text"]
        return raw(answer, path, text, "text/plain", {**query, **fields})
    return request(answer, "POST", path, query=query, body=body)


def in_path(name: str) -> str:
    return quote(name, safe="")


def of_collection(collection: str, rest: str = "") -> str:
    return f"/v1/collections/{in_path(collection)}{rest}"


def given(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def commas(words: Words | None) -> str | None:
    """Return names with commas between them."""
    return words if words is None or isinstance(words, str) else ",".join(words)


def to_query(query: Mapping[str, object] | None) -> str:
    pairs: list[tuple[str, str]] = []
    for name, value in (query or {}).items():
        if value is None:
            continue
        if isinstance(value, bool):
            pairs.append((name, "true" if value else "false"))
        elif isinstance(value, str | int | float):
            pairs.append((name, str(value)))
        elif isinstance(value, Sequence):
            pairs.extend((name, word) for word in value)
        else:
            raise TypeError(f"{name}: must be a str, a number or a sequence of str, not {type(value).__name__}")
    return "?" + urlencode(pairs, quote_via=quote) if pairs else ""


def to_json(value: object) -> bytes:
    """Return JSON without newlines. Signatures and other bytes become base64."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=plain).encode()
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8. If it is escaped, it reaches the server, which refuses or replaces it, as
        # `invalid` says.
        return json.dumps(value, allow_nan=False, default=plain).encode()


def plain(value: Any) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    try:
        return base64.b64encode(value).decode()
    except TypeError:
        raise TypeError(f"{type(value).__name__} cannot be sent as JSON") from None
