"""The arguments of a client, checked once."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from os import PathLike
from urllib.parse import urlsplit

from pyhapax.client.key import Key

DEFAULT_URL = "http://127.0.0.1:8080"


@dataclass(frozen=True, slots=True)
class Settings:
    """The address of the server, the key, and the limits on waiting. Can be pickled if the key can be pickled."""

    url: str
    key: Key | None
    ca_file: str | None
    retries: int
    retry_seconds_max: float
    timeout: float

    def tls(self) -> ssl.SSLContext | bool:
        """Return how certificates are checked: with the authorities of `ca_file` alone, or with those of the system."""
        return True if self.ca_file is None else ssl.create_default_context(cafile=self.ca_file)


def checked(
    url: str,
    key: Key | None,
    ca_file: str | PathLike[str] | None,
    retries: int,
    retry_seconds_max: float,
    timeout: float,
) -> Settings:
    """Check the arguments of a client. A missing or damaged `ca_file` raises here, not in the first request."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("url: must begin with http:// or https:// and have a host")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("url: must have no user, no query and no fragment; give a key as key_file= or key_env=")
    if retries < 0 or retry_seconds_max < 0:
        raise ValueError("retries, retry_seconds_max: must be 0 or more")
    if timeout <= 0:
        raise ValueError("timeout: must be more than 0 seconds")
    authorities = None if ca_file is None else os.path.abspath(ca_file)
    made = Settings(url.rstrip("/"), key, authorities, retries, retry_seconds_max, timeout)
    made.tls()
    return made
