"""AsyncClient: runs the operations in the caller's event loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from pyhapax.client import document_requests as documents
from pyhapax.client import server_requests as server
from pyhapax.client.answers import DocumentAnswer, Summary
from pyhapax.client.bulk import Counter, Stream
from pyhapax.client.configured import Configured, like
from pyhapax.client.document_requests import BulkRequest
from pyhapax.client.request import Request
from pyhapax.client.settings import Settings
from pyhapax.client.transport import Transport

P = ParamSpec("P")
T = TypeVar("T")


def sent(build: Callable[P, Request[T]]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return a method that sends the request that `build` makes."""

    async def method(self: AsyncClient, /, *arguments: P.args, **named: P.kwargs) -> T:
        return await self._transport.send(build(*arguments, **named))

    return like(build, method)


def streamed(build: Callable[P, BulkRequest]) -> Callable[Concatenate[Any, P], AsyncBulk]:
    """Return a method that begins the bulk request that `build` makes."""

    def method(self: AsyncClient, /, *arguments: P.args, **named: P.kwargs) -> AsyncBulk:
        return AsyncBulk(self._transport, build(*arguments, **named))

    return like(build, method, "AsyncBulk")


class AsyncBulk:
    """The answers of a bulk request, as an async iterator. To end the request early, close this or use `async with`."""

    def __init__(self, transport: Transport, request: BulkRequest) -> None:
        self._stream = Stream(transport, request.path, request.documents)
        self._counter = Counter(self._stream, request.progress)
        self._ready: deque[DocumentAnswer] = deque()

    @property
    def summary(self) -> Summary | None:
        """The summary, after all answers have arrived."""
        return self._stream.summary

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> DocumentAnswer:
        if not self._ready:
            self._ready.extend(await self._stream.take())
        if not self._ready:
            raise StopAsyncIteration
        return self._counter.count(self._ready.popleft())

    async def aclose(self) -> None:
        """End the request. Documents that were sent but not yet answered may have been stored."""
        self._ready.clear()
        await self._stream.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        self._stream.abandon()


class AsyncClient(Configured):
    """A client of a hapax server, for code with asyncio. It belongs to the event loop of its first request."""

    def _start(self, settings: Settings) -> None:
        self._transport = Transport(settings)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    check_document = sent(documents.check_document)
    check_html = sent(documents.check_html)
    insert_document = sent(documents.insert_document)
    insert_html = sent(documents.insert_html)
    read_documents = sent(documents.read_documents)
    delete_document = sent(documents.delete_document)
    get_documents = sent(documents.get_documents)
    delete_documents = sent(documents.delete_documents)
    read_clusters = sent(documents.read_clusters)
    list_largest_clusters = sent(documents.list_largest_clusters)
    batch = sent(documents.batch)
    bulk = streamed(documents.bulk)
    compare = sent(documents.compare)
    find_overlaps = sent(documents.find_overlaps)
    dedup = sent(documents.dedup)
    sign = sent(documents.sign)
    extract = sent(documents.extract)

    list_collections = sent(server.list_collections)
    describe_collection = sent(server.describe_collection)
    create_collection = sent(server.create_collection)
    update_collection = sent(server.update_collection)
    drop_collection = sent(server.drop_collection)
    load_collection = sent(server.load_collection)
    merge_collection = sent(server.merge_collection)
    list_buckets = sent(server.list_buckets)
    list_labels = sent(server.list_labels)
    read_statistics = sent(server.read_statistics)
    evaluate_golden_set = sent(server.evaluate_golden_set)
    set_golden_set = sent(server.set_golden_set)
    delete_golden_set = sent(server.delete_golden_set)
    list_jobs = sent(server.list_jobs)
    read_job = sent(server.read_job)
    stop_job = sent(server.stop_job)
    read_reports = sent(server.read_reports)
    read_access = sent(server.read_access)
    list_keys = sent(server.list_keys)
    add_key = sent(server.add_key)
    revoke_key = sent(server.revoke_key)
    search_audit_log = sent(server.search_audit_log)
    start_backup = sent(server.start_backup)
    read_backups = sent(server.read_backups)
    cancel_backup = sent(server.cancel_backup)
    tune = sent(server.tune)
    version = sent(server.version)
    livez = sent(server.livez)
    readyz = sent(server.readyz)
    metrics = sent(server.metrics)
    openapi = sent(server.openapi)
