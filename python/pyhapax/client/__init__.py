"""A client for a hapax server: Client, and AsyncClient for code with asyncio.

Each operation of openapi.yaml is a method. Answers are dataclasses; problems are exceptions. The package needs
aiohttp: pip install 'pyhapax[client]'.
"""

from __future__ import annotations

try:
    import aiohttp as _aiohttp  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "aiohttp":
        raise
    raise ImportError("pyhapax.client needs aiohttp: pip install 'pyhapax[client]'", name="aiohttp") from None

from pyhapax.client.answers import DeletedDocument, DocumentAnswer, FailedDocument, Match, Problem, Summary, Verdict
from pyhapax.client.asynchronous import AsyncBulk, AsyncClient
from pyhapax.client.bulk import Progress
from pyhapax.client.document_requests import Comparand, DocumentInput
from pyhapax.client.errors import (
    Conflict,
    Forbidden,
    HapaxError,
    InvalidValue,
    NoRoom,
    NotFound,
    ProblemError,
    TooLarge,
    TooManyRequests,
    TransportError,
    Unauthorized,
    Unavailable,
)
from pyhapax.client.synchronous import Bulk, Client

__all__ = [
    "AsyncBulk",
    "AsyncClient",
    "Bulk",
    "Client",
    "Comparand",
    "Conflict",
    "DeletedDocument",
    "DocumentAnswer",
    "DocumentInput",
    "FailedDocument",
    "Forbidden",
    "HapaxError",
    "InvalidValue",
    "Match",
    "NoRoom",
    "NotFound",
    "Problem",
    "ProblemError",
    "Progress",
    "Summary",
    "TooLarge",
    "TooManyRequests",
    "TransportError",
    "Unauthorized",
    "Unavailable",
    "Verdict",
]
