"""JSON -> the dataclasses of the answers.

Knows the types of their fields, but not the meaning of the fields. Unknown fields are skipped, because a newer server
may add some.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, cast

from pyhapax.client import answers

T = TypeVar("T")
Decode = Callable[[Any], Any]


def decode(kind: type[T], value: object) -> T:
    """Make an answer of parsed JSON. Bad JSON raises a KeyError, a TypeError or a ValueError."""
    return cast("T", decoder(cast("Any", kind))(value))


def document_answer(value: dict[str, Any]) -> answers.DocumentAnswer:
    """Make the answer about one document of a batch or of bulk."""
    if "error" in value:
        return decode(answers.FailedDocument, value)
    if "deleted" in value:
        return decode(answers.DeletedDocument, value)
    return decode(answers.Verdict, value)


@cache
def decoder(kind: Any) -> Decode:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind == answers.DocumentAnswer:
        return document_answer
    if origin is types.UnionType:
        # The only unions are optional fields: X | None. A field that is present is never null.
        return decoder(arguments[0])
    if origin is list:
        item = decoder(arguments[0])
        return lambda value: [item(each) for each in value]
    if kind is datetime:
        return datetime.fromisoformat
    if dataclasses.is_dataclass(kind):
        return of_fields(cast("type[Any]", kind))
    return lambda value: value


def of_fields(kind: type[Any]) -> Decode:
    hints = typing.get_type_hints(kind)
    # `from` is a word of Python, so the attribute is `from_`.
    decoders = {each.name.rstrip("_"): (each.name, decoder(hints[each.name])) for each in dataclasses.fields(kind)}

    def make(value: Any) -> Any:
        found = {}
        for name, given in value.items():
            if known := decoders.get(name):
                found[known[0]] = known[1](given)
        return kind(**found)

    return make
