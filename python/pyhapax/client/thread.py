"""An event loop in a separate thread, for the client that is not async.

The thread is a daemon and starts with the first call. After a fork, the child process has no such thread, so it starts
a new one. The child keeps the inherited objects and never touches them: closing them would disturb the connections of
the parent.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from pyhapax.client.settings import Settings
from pyhapax.client.transport import Transport

T = TypeVar("T")
STOP_SECONDS_MAX = 5.0


class LoopThread:
    """An event loop, its thread, and the connections of a client."""

    def __init__(self, settings: Settings) -> None:
        self.transport = Transport(settings)
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        # The lock is reentrant, because the garbage collector may call code that uses or closes the same client.
        self._lock = threading.RLock()
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="hapax client", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end. An exception such as Ctrl-C cancels the coroutine."""
        try:
            future = self._begin(work)
        except RuntimeError:
            work.close()
            raise
        try:
            return future.result()
        except CancelledError:
            raise RuntimeError("the client was closed during the request") from None
        except BaseException:
            future.cancel()
            raise

    def _begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        # This check does not take the lock, because another thread may have held the lock during the fork.
        if self.pid != os.getpid():
            raise RuntimeError("the request belongs to another process")
        if threading.get_ident() == self._thread.ident:
            raise RuntimeError("the client was called in the thread that runs its requests; call it in another thread")
        with self._lock:
            if self._stopped:
                raise RuntimeError("the client is closed")
            return asyncio.run_coroutine_threadsafe(work, self.loop)

    def stop(self, wait: bool) -> None:
        """Close the connections and end the thread. With `wait`, wait for its end. A second call does nothing."""
        if self.pid != os.getpid():
            return
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
            self.loop.call_soon_threadsafe(self.loop.stop)
        if wait and threading.get_ident() != self._thread.ident:
            self._thread.join(STOP_SECONDS_MAX)

    def _work(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.run_until_complete(self._end())
        self.loop.close()

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.transport.close()
        await self.loop.shutdown_asyncgens()


class LoopThreads:
    """The loop thread of this process. It is started with the first call, and again in the child of a fork."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._current: LoopThread | None = None
        self._inherited: list[LoopThread] = []
        self._closed = False

    def get(self) -> LoopThread:
        current = self._current
        if current is not None and current.pid == os.getpid() and not self._closed:
            return current
        with LOCKS.lock:
            if self._closed:
                raise RuntimeError("the client is closed")
            current = self._current
            if current is not None and current.pid != os.getpid():
                self._inherited.append(current)
                current = None
            if current is None:
                current = self._current = LoopThread(self._settings)
            # `_close` does not wait for the lock, so it may not have seen the new thread.
            if self._closed:
                current.stop(wait=False)
                raise RuntimeError("the client is closed")
            return current

    def close(self) -> None:
        self._close(wait=True)

    def abandon(self) -> None:
        """Close a client without references, or one that is still open at the exit of the interpreter.

        The garbage collector may call this in any thread, also in a new thread for whose start another thread waits
        with the lock. So this method does not wait. If the main thread has ended, it waits until the connections are
        closed.
        """
        self._close(wait=not threading.main_thread().is_alive())

    def _close(self, wait: bool) -> None:
        self._closed = True
        if self._current is not None:
            self._current.stop(wait)


class Locks:
    """The lock of `LoopThreads`. A child gets a new lock: another thread may have held the lock during the fork.

    The lock is reentrant, because the garbage collector may call code that uses another client.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()

    def renew(self) -> None:
        self.lock = threading.RLock()


LOCKS = Locks()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=LOCKS.renew)
