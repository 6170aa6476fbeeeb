"""The server over HTTP as a real process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.conftest import PATIENCE

TOKEN = "a-token-of-the-tests"
LEGACY, MODERN = "legacy", "2026-07-28"


class HttpServer:
    """A running server: its address, and what it said."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: list[str] = []
        assert process.stderr
        for line in process.stderr:
            self.said.append(line)
            if "MCP at" in line:
                break
        else:
            raise AssertionError("".join(self.said))
        self.url = self.said[-1].split("MCP at ")[1].split(";")[0]
        self.base = self.url.removesuffix("/mcp")
        self.address = ("127.0.0.1", httpx2.URL(self.url).port)

    def end(self) -> str:
        """End it, if it has not ended, and return all that it wrote."""
        self.process.terminate()
        self.process.wait(PATIENCE)
        assert self.process.stderr
        return "".join(self.said) + self.process.stderr.read()

    @asynccontextmanager
    async def client(self, mode: str = LEGACY, headers: dict[str, str] | None = None) -> AsyncIterator[Client]:
        """Connect as the SDK's client does, in either era of the protocol."""
        async with (
            httpx2.AsyncClient(headers=headers or {"Authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=mode) as client,
        ):
            yield client


@contextmanager
def http_server(*options: str, token: str | None = TOKEN) -> Iterator[HttpServer]:
    """Start a server at a free port."""
    variables = {name: value for name, value in os.environ.items() if name != "MLDEBUG_MCP_TOKEN"}
    if token is not None:
        variables["MLDEBUG_MCP_TOKEN"] = token
    process = subprocess.Popen(
        [sys.executable, "-m", "mldebug_mcp", "serve", "--http", "--port", "0", *options],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=variables,
    )  # fmt: skip
    try:
        yield HttpServer(process)
    finally:
        process.kill()
        process.wait()
        assert process.stderr
        process.stderr.close()
