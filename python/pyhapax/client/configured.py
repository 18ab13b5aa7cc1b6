"""The common parts of Client and AsyncClient: their arguments, `repr`, pickles, and the signatures of their methods."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from os import PathLike
from typing import Any, Self, TypeVar

from pyhapax.client import key as keys
from pyhapax.client.settings import DEFAULT_URL, Settings, checked

F = TypeVar("F", bound=Callable[..., Any])


class Configured:
    """The base class of both clients. It cannot send requests."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        key: str | None = None,
        key_file: str | PathLike[str] | None = None,
        key_env: str | None = None,
        ca_file: str | PathLike[str] | None = None,
        retries: int = 4,
        retry_seconds_max: float = 60.0,
        timeout: float = 130.0,
    ) -> None:
        """Check the arguments. The client connects with its first request.

        The API key is given as `key`, in the file `key_file`, or in the environment variable `key_env`. With `ca_file`,
        only the authorities of this file are trusted. A request is sent again up to `retries` times within
        `retry_seconds_max`. `timeout` is how long the client waits for the next bytes of an answer, in seconds.
        """
        found = keys.read(key, key_file, key_env)
        self._use(checked(url, found, ca_file, retries, retry_seconds_max, timeout))

    def _use(self, settings: Settings) -> None:
        self._settings = settings
        self._start(settings)

    def _start(self, settings: Settings) -> None:
        raise NotImplementedError

    @classmethod
    def _of(cls, settings: Settings) -> Self:
        made = cls.__new__(cls)
        made._use(settings)
        return made

    def __reduce__(self) -> tuple[Callable[[Settings], Self], tuple[Settings]]:
        return self._of, (self._settings,)

    def __repr__(self) -> str:
        return f"<pyhapax.client.{type(self).__name__} of {self._settings.url}>"


def like(build: Callable[..., Any], method: F, answer: str | None = None) -> F:
    """Give a method the name, the documentation and the parameters of the function that builds its request."""
    made = inspect.signature(build)
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    # `Request[Verdict]` becomes `Verdict`.
    returned = answer or re.sub(r"Request\[(\w+)\]", r"\1", str(made.return_annotation))
    signature = made.replace(parameters=[itself, *made.parameters.values()], return_annotation=returned)
    method.__name__, method.__doc__ = build.__name__, build.__doc__
    method.__signature__ = signature  # type: ignore[attr-defined]
    return method
