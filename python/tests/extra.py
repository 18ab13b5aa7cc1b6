"""Imports pyhapax.client. Skips the tests if its extra is not installed, except if HAPAX_BINARY names a server."""

import os

import pytest


def client_extra():
    if not os.environ.get("HAPAX_BINARY"):
        pytest.importorskip("aiohttp")
    import pyhapax.client

    return pyhapax.client
