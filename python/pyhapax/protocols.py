"""Types of arguments: Arrow data of any library that has the methods of Arrow's PyCapsule interface."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class ArrowArray(Protocol):
    """An array of any library that knows Arrow."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Return the capsules of a schema and an array."""


class ArrowStream(Protocol):
    """A column in chunks of any library that knows Arrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the capsule of a stream."""


Texts = Iterable[str | None] | ArrowArray | ArrowStream
"""A list or another iterable of str and None, or a column of strings."""
