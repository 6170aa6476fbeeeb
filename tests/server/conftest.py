from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from mcp import Client

from mldebug_mcp.server import make_server


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with Client(make_server(), raise_exceptions=True) as connected:
        yield connected


@pytest.fixture(params=["legacy", "auto"], ids=["handshake", "discover"])
async def client_of_each_era(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """A client of the protocol of 2025-11-25, and one of that of 2026-07-28."""
    async with Client(make_server(), mode=request.param, raise_exceptions=True) as connected:
        yield connected
