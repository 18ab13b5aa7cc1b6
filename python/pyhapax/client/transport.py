"""Requests -> answers, over aiohttp. Knows statuses and problems, and no operation.

No exception of aiohttp reaches the user, not even as the cause or the context of another exception: it may contain the
headers of the request, and so the key.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import TypeVar

import aiohttp
from yarl import URL

from pyhapax import __version__
from pyhapax.client.answers import Problem
from pyhapax.client.decode import decode
from pyhapax.client.errors import HapaxError, ProblemError, TransportError, problem_error
from pyhapax.client.request import Request
from pyhapax.client.retries import Attempts, NotSent, Refused, retry_after_s
from pyhapax.client.settings import Settings

T = TypeVar("T")
CONNECT_SECONDS_MAX = 10.0
PROBLEM_BYTES_MAX = 1 << 20
# For work of any length. If the server is gone, TCP notices it.
PATIENT = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS_MAX)


class Transport:
    """The connections of one client in one event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    async def send(self, request: Request[T]) -> T:
        """Send a request until it is answered or not worth another attempt."""
        attempts = self.attempts()
        while True:
            answer = await self._attempt(request)
            if isinstance(answer, bytes):
                break
            wait = attempts.wait_s(answer, request.repeatable) if request.retried else None
            if wait is None:
                raise answer
            await asyncio.sleep(wait)
        try:
            return request.read(answer)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TransportError(f"the answer is not from a hapax server: {error}") from error

    def attempts(self) -> Attempts:
        return Attempts(self.settings.retries, self.settings.retry_seconds_max)

    async def _attempt(self, request: Request[T]) -> bytes | HapaxError:
        headers = {} if request.content_type is None else {"Content-Type": request.content_type}
        try:
            session = self.session()
            url = self.url(request.path)
            with ExitStack() as opened:
                data = request.body if request.file is None else opened.enter_context(request.file.open("rb"))
                # The work on a file may take minutes.
                timeout = self.timeout if request.file is None else PATIENT
                async with session.request(
                    request.method, url, data=data, headers=headers, allow_redirects=False, timeout=timeout
                ) as response:
                    if response.status >= 300:
                        return await problem_of(response)
                    return await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return self.lost(error)

    async def open(self, path: str, content_type: str, body: AsyncIterator[bytes]) -> aiohttp.ClientResponse:
        """Begin a request that is answered while it is sent. May raise the exceptions that `lost` takes."""
        headers = {"Content-Type": content_type, "Accept-Encoding": "identity"}
        # Documents and answers may come at any pace.
        return await self.session().post(
            self.url(path), data=body, headers=headers, allow_redirects=False, timeout=PATIENT
        )

    def lost(self, failure: Exception) -> TransportError:
        """Return the exception for a failure of the connection."""
        error = failure.inner if isinstance(failure, Broken) else failure
        sentence = f"{self.settings.url}: {str(error) or type(error).__name__}"
        if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError | ssl.SSLError):
            return Refused(sentence)
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
            return NotSent(sentence)
        if isinstance(error, aiohttp.SocketTimeoutError):
            return TransportError(f"{self.settings.url}: no answer for {self.settings.timeout} s")
        return TransportError(sentence)

    def url(self, path: str) -> URL:
        # The path is already encoded, so that a slash in a name does not divide the path.
        return URL(self.settings.url + path, encoded=True)

    def session(self) -> aiohttp.ClientSession:
        """Return the connections, which belong to the running event loop."""
        loop = asyncio.get_running_loop()
        if self._closed:
            raise RuntimeError("the client is closed")
        if self._session is None:
            self._session, self._loop = self._connect(), loop
        elif self._loop is not loop:
            raise RuntimeError("the client belongs to another event loop; make one client for each event loop")
        return self._session

    @property
    def timeout(self) -> aiohttp.ClientTimeout:
        return aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS_MAX, sock_read=self.settings.timeout)

    def _connect(self) -> aiohttp.ClientSession:
        headers = {"User-Agent": f"pyhapax/{__version__}"}
        if self.settings.key is not None:
            headers["Authorization"] = self.settings.key.authorization()
        connector = aiohttp.TCPConnector(ssl=self.settings.tls(), socket_factory=watched_socket)
        return aiohttp.ClientSession(
            connector=connector,
            headers=headers,
            timeout=self.timeout,
            cookie_jar=aiohttp.DummyCookieJar(),
            middlewares=[once],
        )

    async def close(self) -> None:
        """Close the connections."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class Broken(aiohttp.ClientError):
    """A lost connection. aiohttp does not know this class, so it does not send the request again."""

    def __init__(self, inner: Exception) -> None:
        super().__init__()
        self.inner = inner


async def once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a request once. By itself, aiohttp would send a GET, a PUT and a DELETE again after a lost connection."""
    try:
        return await handler(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise Broken(error) from None


def watched_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """Return a socket that notices within about a minute that the other side is gone."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in [("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)]:
        # Not every system has all of these options.
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made


async def problem_of(response: aiohttp.ClientResponse) -> ProblemError:
    """Return the problem of an answer. It has no code if the answer came from a proxy instead of hapax."""
    data = await response.content.read(PROBLEM_BYTES_MAX)
    wait = retry_after_s(response.headers.get("Retry-After"))
    try:
        problem = decode(Problem, json.loads(data))
    except (KeyError, TypeError, ValueError, AttributeError):
        title = response.reason or ""
        begin = data[:200].decode(errors="replace")
        detail = f"the answer is not from a hapax server: {begin!r}"
        problem = Problem(type="about:blank", code="", title=title, status=response.status, detail=detail)
    return problem_error(problem, wait)
