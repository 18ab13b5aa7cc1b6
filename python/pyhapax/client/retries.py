"""Decides which failures are worth another attempt, and when: the rules of "Retries" in docs/http-api.md."""

from __future__ import annotations

import random
import time
from email.utils import parsedate_to_datetime

from pyhapax.client.errors import HapaxError, ProblemError, TransportError

FIRST_WAIT_S = 1.0


class NotSent(TransportError):
    """The server was not reached, so nothing was done."""


class Refused(TransportError):
    """The server was reached, but may not be trusted. Another attempt would not help."""


class Attempts:
    """The attempts of one request: a bounded number in a bounded time."""

    def __init__(self, retries: int, seconds_max: float) -> None:
        self._left = retries
        self._end = time.monotonic() + seconds_max
        self._wait_s = FIRST_WAIT_S

    def wait_s(self, error: HapaxError, repeatable: bool) -> float | None:
        """Return the seconds until the next attempt; None if there is no further attempt."""
        if self._left == 0 or not is_worth_it(error, repeatable):
            return None
        told = error.retry_after_s if isinstance(error, ProblemError) else None
        # Clients that were refused at the same time try again at different times.
        wait = random.uniform(0.5, 1.0) * self._wait_s if told is None else told + random.uniform(0.0, 0.1)
        if time.monotonic() + wait > self._end:
            return None
        self._left -= 1
        self._wait_s *= 2
        return wait


def is_worth_it(error: HapaxError, repeatable: bool) -> bool:
    if isinstance(error, NotSent | Refused):
        return isinstance(error, NotSent)
    if isinstance(error, ProblemError):
        if error.status == 429:
            return error.retry_after_s is not None
        # A 503 with another code than `starting` may mean that the server has begun the work.
        if error.status == 503 and (repeatable or error.code == "starting"):
            return True
        return repeatable and error.status in (408, 502, 504)
    return repeatable


def retry_after_s(header: str | None) -> float | None:
    """Return the seconds of a `Retry-After`, which has a number or a date."""
    if header is None:
        return None
    if header.strip().isdecimal():
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except ValueError:
        return None
