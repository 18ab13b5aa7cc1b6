"""pyhapax.client, or a skip where its extra is not installed. Where a server is, nothing is skipped."""

import os

import pytest


def client_extra():
    if not os.environ.get("HAPAX_BINARY"):
        pytest.importorskip("aiohttp")
    import pyhapax.client

    return pyhapax.client
