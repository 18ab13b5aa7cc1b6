"""An API key: given as a string, in a file, or in an environment variable.

The secret leaves this object only by `authorization()`, for the header of a request. `repr` and pickles contain the
place of the key, never the key itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from os import PathLike
from pathlib import Path

Load = tuple[Callable[..., "Key"], tuple[str]]


class Hidden(str):
    """A str that `repr` does not show. Tracebacks with local variables also show the variables of aiohttp."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'<hidden>'"


class Key:
    """An API key, and the place that it came from."""

    __slots__ = ("_load", "_secret", "place")

    def __init__(self, secret: str, place: str, load: Load | None) -> None:
        secret = secret.strip()
        if not secret:
            raise ValueError(f"{place} is empty")
        if not all("!" <= each <= "~" for each in secret):
            raise ValueError(f"{place} has a character that an API key cannot have")
        self._secret, self.place, self._load = secret, place, load

    def authorization(self) -> str:
        """Return the value of the header `Authorization`."""
        return Hidden(f"Bearer {self._secret}")

    def __repr__(self) -> str:
        return f"<Key: {self.place}>"

    def __reduce__(self) -> Load:
        if self._load is None:
            raise TypeError("a client with key= cannot be pickled; give the key as key_file= or key_env=")
        return self._load


def of_file(path: str) -> Key:
    return Key(Path(path).read_text(encoding="utf-8"), f"the key file {path}", (of_file, (path,)))


def of_variable(name: str) -> Key:
    if name not in os.environ:
        raise ValueError(f"key_env: the environment has no variable {name}")
    return Key(os.environ[name], f"the variable {name}", (of_variable, (name,)))


def read(key: str | None, key_file: str | PathLike[str] | None, key_env: str | None) -> Key | None:
    """Return the key that was given in one of three ways, or None."""
    if sum(given is not None for given in (key, key_file, key_env)) > 1:
        raise ValueError("give only one of key, key_file and key_env")
    if key_file is not None:
        return of_file(os.path.abspath(key_file))
    if key_env is not None:
        return of_variable(key_env)
    return None if key is None else Key(key, "key", None)
