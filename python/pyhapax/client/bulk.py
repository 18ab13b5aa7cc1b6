"""A bulk request: documents are sent while answers arrive, both in bounded memory. Runs in an event loop.

Documents are taken only while few documents are unanswered, so a slow consumer or a slow server slows the upload.
Answers are always read, so neither side waits for the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from pyhapax.client.answers import DocumentAnswer, FailedDocument, Problem, Summary
from pyhapax.client.decode import decode, document_answer
from pyhapax.client.errors import HapaxError, TransportError, problem_error
from pyhapax.client.pull import NOTHING, Documents, Grant, pull
from pyhapax.client.request import to_json
from pyhapax.client.transport import Transport, problem_of

# The largest number of documents that were taken, but whose answers the consumer has not taken yet.
DOCUMENTS_MAX = 1024
DOCUMENT_BYTES_MAX = 8 << 20
# The most bytes that the answers to these documents may take. The server ends a stream if it has to keep 16 MiB of
# answers for 30 s.
ANSWER_BYTES_MAX = 8 << 20
PIECE_BYTES = 64 << 10
GRANT_MAX = 64
# After this time without a document, an empty line is sent, because the server ends a stream on which nothing was sent
# for 5 minutes. An empty line has no answer.
EMPTY_LINE_AFTER_S = 60.0
# The first document is taken once the server has accepted the request. A refusal takes up to 2 s, because the server
# first tries to read the rest of the body. A proxy may hold back the beginning of the answer until it has more of the
# answer, so the wait has a limit.
ACCEPTED_SECONDS_MAX = 5.0


@dataclass(frozen=True, slots=True)
class Progress:
    """How many documents were taken, how many answers were returned, and how many of these are errors."""

    sent: int
    answered: int
    errors: int


class Window:
    """The documents that were taken and whose answers were not consumed yet, in order."""

    def __init__(self) -> None:
        self._sizes: deque[int] = deque()
        self._bytes = 0
        self._answer_bytes = 1

    def enter(self, size: int) -> None:
        self._sizes.append(size)
        self._bytes += size

    def leave(self, count: int) -> None:
        for _ in range(count):
            self._bytes -= self._sizes.popleft()

    def saw_answer(self, size: int) -> None:
        self._answer_bytes = max(self._answer_bytes, size)

    def free(self) -> Grant:
        """Return how many documents may be taken now, and about how many bytes."""
        places = min(DOCUMENTS_MAX, max(1, ANSWER_BYTES_MAX // self._answer_bytes)) - len(self._sizes)
        left = DOCUMENT_BYTES_MAX - self._bytes
        return Grant(min(places, GRANT_MAX), left) if places > 0 and left > 0 else NOTHING


class Stream:
    """One bulk request."""

    def __init__(self, transport: Transport, path: str, documents: Documents) -> None:
        self._transport, self._path, self._documents = transport, path, documents
        self.sent = 0
        self.arrived = 0
        self.summary: Summary | None = None
        self._window = Window()
        self._lines: deque[bytes] = deque()
        self._answers: list[DocumentAnswer] = []
        self._taken = 0
        self._all_taken = False
        self._accepted = False
        self._failed: BaseException | None = None
        self._exchange: asyncio.Task[None] | None = None
        self._pulling: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._closed = False

    async def take(self) -> list[DocumentAnswer]:
        """Return the answers that have arrived: at least one, or none at the end.

        Answers of the previous call count as consumed.
        """
        self._window.leave(self._taken)
        self._taken = 0
        self._wake()
        if self._exchange is None and not self._closed:
            self._exchange = asyncio.create_task(self._run())
        await self._until(lambda: bool(self._answers) or self._closed)
        answers, self._answers = self._answers, []
        self._taken = len(answers)
        if not answers and self._failed is not None:
            failed, self._failed = self._failed, None
            raise failed
        return answers

    async def close(self) -> None:
        """End the request. Documents that were sent may have been stored."""
        self._closed = True
        self._wake()
        tasks = [task for task in (self._exchange, self._pulling) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # A cancelled task keeps its frames, and these keep the documents.
        self._exchange = self._pulling = None

    def abandon(self) -> None:
        """End the request, from any thread, without waiting."""
        for task in (self._exchange, self._pulling):
            if task is not None and not task.done():
                # A closed event loop has no tasks left.
                with contextlib.suppress(RuntimeError):
                    task.get_loop().call_soon_threadsafe(task.cancel)

    async def _run(self) -> None:
        try:
            failed = await self._try()
            if isinstance(failed, HapaxError):
                failed.answered = self.arrived
            self._failed = failed or self._failed
        finally:
            self._closed = True
            self._wake()
            if self._pulling is not None:
                self._pulling.cancel()
                self._pulling = None

    async def _try(self) -> HapaxError | None:
        attempts = self._transport.attempts()
        while True:
            try:
                failed = await self._exchange_lines()
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                failed = self._transport.lost(error)
            # No document is sent twice: the caller decides about documents without an answer.
            begun = self._pulling is not None
            wait = None if failed is None or begun else attempts.wait_s(failed, repeatable=True)
            if wait is None:
                return failed
            await asyncio.sleep(wait)

    async def _exchange_lines(self) -> HapaxError | None:
        response = await self._transport.open(self._path, "application/x-ndjson", self._body())
        try:
            if response.status != 200:
                return await problem_of(response)
            self._accepted = True
            self._wake()
            return await self._read_lines(response.content)
        finally:
            # If the answer has been read to its end, this does nothing.
            response.close()

    async def _read_lines(self, content: aiohttp.StreamReader) -> HapaxError | None:
        begun = bytearray()
        async for piece in content.iter_any():
            first, *more = piece.split(b"\n")
            begun += first
            for rest in more:
                if failed := self._line(begun):
                    return failed
                begun = bytearray(rest)
        return None if self.summary is not None else TransportError("the answer ended before its summary")

    def _line(self, line: bytearray) -> HapaxError | None:
        try:
            value: dict[str, Any] = json.loads(line)
            kind = value["kind"]
            if kind == "fatal":
                return problem_error(decode(Problem, value["error"]))
            if kind == "summary":
                self.summary = decode(Summary, value["summary"])
            elif kind in ("verdict", "deleted", "error"):
                if self.arrived == self.sent:
                    return TransportError("the answer has more lines than documents were sent")
                self._answers.append(document_answer(value))
                self.arrived += 1
                self._window.saw_answer(len(line))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return TransportError(f"a line of the answer is not from a hapax server: {error}")
        self._wake()
        return None

    async def _body(self) -> AsyncIterator[bytes]:
        # The line makes aiohttp send the head of the request. `Expect: 100-continue` would not work: a server that
        # begins its answer at once sends no 100, and aiohttp would wait for the 100.
        yield b"\n"
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ACCEPTED_SECONDS_MAX):
                await self._until(lambda: self._accepted)
        self._pulling = asyncio.create_task(self._pull())
        while True:
            try:
                async with asyncio.timeout(EMPTY_LINE_AFTER_S):
                    await self._until(lambda: bool(self._lines) or self._all_taken)
            except TimeoutError:
                yield b"\n"
                continue
            if not self._lines:
                return
            piece = bytearray()
            while self._lines and len(piece) < PIECE_BYTES:
                piece += self._lines.popleft()
            yield bytes(piece)

    async def _pull(self) -> None:
        documents, self._documents = self._documents, ()
        try:
            await pull(documents, self._grant, to_line, self._arrived)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            # The documents before the error are still sent, and their answers are returned before the error is raised.
            self._failed = error
        self._all_taken = True
        self._wake()

    async def _grant(self) -> Grant:
        await self._until(lambda: self._window.free().documents > 0 or self._closed)
        return NOTHING if self._closed else self._window.free()

    def _arrived(self, line: bytes) -> None:
        self.sent += 1
        self._window.enter(len(line))
        self._lines.append(line)
        self._wake()

    def _wake(self) -> None:
        # Each waiter checks its own condition. There are at most three waiters.
        event, self._changed = self._changed, asyncio.Event()
        event.set()

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self._changed.wait()


def to_line(document: Mapping[str, object]) -> bytes:
    if not isinstance(document, Mapping):
        raise TypeError(f"a document must be a mapping, not {type(document).__name__}")
    return to_json(document) + b"\n"


class Counter:
    """Counts the answers that the consumer took, for its callback."""

    def __init__(self, stream: Stream, progress: Callable[[Progress], object] | None) -> None:
        self._stream, self._progress = stream, progress
        self._answered = self._errors = 0

    def count(self, answer: DocumentAnswer) -> DocumentAnswer:
        """Count an answer and return it."""
        self._answered += 1
        self._errors += isinstance(answer, FailedDocument)
        if self._progress is not None:
            self._progress(Progress(self._stream.sent, self._answered, self._errors))
        return answer
