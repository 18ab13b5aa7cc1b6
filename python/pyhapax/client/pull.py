"""Documents of an iterable -> lines, no faster than they are granted.

A plain iterable runs in a separate thread, so that answers can arrive while it waits for its next document. The thread
is a daemon, because nothing can end it while it waits.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

Document = Mapping[str, object]
Documents = Iterable[Document] | AsyncIterable[Document]
ToLine = Callable[[Document], bytes]


@dataclass(frozen=True, slots=True)
class Grant:
    """How many documents may be taken, and after how many bytes to ask again."""

    documents: int
    bytes: int


NOTHING = Grant(0, 0)


class Mark(Enum):
    """The messages that a thread sends in addition to lines."""

    GRANT_USED = "the grant is used up"
    END = "there are no more documents"


async def pull(
    documents: Documents,
    grant: Callable[[], Awaitable[Grant]],
    to_line: ToLine,
    arrived: Callable[[bytes], None],
) -> None:
    """Call `arrived` with the line of each document, in the event loop. Ends if nothing is granted."""
    if isinstance(documents, AsyncIterable):
        await of_async(documents, grant, to_line, arrived)
    else:
        await of_thread(documents, grant, to_line, arrived)


async def of_async(
    documents: AsyncIterable[Document],
    grant: Callable[[], Awaitable[Grant]],
    to_line: ToLine,
    arrived: Callable[[bytes], None],
) -> None:
    iterator = aiter(documents)
    while (granted := await grant()).documents:
        left = granted.bytes
        for _ in range(granted.documents):
            try:
                document = await anext(iterator)
            except StopAsyncIteration:
                return
            line = to_line(document)
            arrived(line)
            left -= len(line)
            if left <= 0:
                break


async def of_thread(
    documents: Iterable[Document],
    grant: Callable[[], Awaitable[Grant]],
    to_line: ToLine,
    arrived: Callable[[bytes], None],
) -> None:
    grants: queue.SimpleQueue[Grant] = queue.SimpleQueue()
    taken: asyncio.Queue[bytes | BaseException | Mark] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def say(item: bytes | BaseException | Mark) -> None:
        loop.call_soon_threadsafe(taken.put_nowait, item)

    thread = threading.Thread(target=work, args=(documents, grants, to_line, say), name="hapax documents", daemon=True)
    thread.start()
    try:
        while (granted := await grant()).documents:
            grants.put(granted)
            while (item := await taken.get()) is not Mark.GRANT_USED:
                if item is Mark.END:
                    return
                if isinstance(item, BaseException):
                    raise item
                arrived(item)
    finally:
        grants.put(NOTHING)


def work(
    documents: Iterable[Document],
    grants: queue.SimpleQueue[Grant],
    to_line: ToLine,
    say: Callable[[bytes | BaseException | Mark], None],
) -> None:
    lines = lines_of(documents, to_line)
    try:
        while (granted := grants.get()).documents:
            left = granted.bytes
            for _ in range(granted.documents):
                try:
                    line = next(lines)
                except StopIteration:
                    say(Mark.END)
                    return
                except BaseException as error:
                    say(error)
                    return
                say(line)
                left -= len(line)
                if left <= 0:
                    break
            say(Mark.GRANT_USED)
    except RuntimeError:
        # The event loop is closed, so nothing waits for documents.
        return


def lines_of(documents: Iterable[Document], to_line: ToLine) -> Iterator[bytes]:
    # A generator runs only when its first line is requested. So `__iter__` of the documents, which may wait or raise an
    # error, runs there.
    for document in documents:
        yield to_line(document)
