"""The server as a real process over stdio, spoken to in hand-written JSON-RPC, one message per line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Process:
    """A server and what a client of it can do.

    Args:
        root: The one folder that it may read; where None, those of the environment.
        options: Of the command line.
        variables: Further ones of its environment.
    """

    def __init__(self, root: Path | None = None, *options: str, **variables: str) -> None:
        roots = {} if root is None else {"MLDEBUG_MCP_ROOTS": str(root)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mldebug_mcp", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **roots, **variables},
        )
        self.number = 0

    def send(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def post(self, method: str, **params: object) -> int:
        """Send a request, and return its number without waiting for the answer."""
        self.number += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}).encode())
        return self.number

    def answer(self, *numbers: int) -> dict[str, Any]:
        """Wait for the answer to one of some requests; those to others are passed over."""
        assert self.process.stdout
        for line in self.process.stdout:
            answer: dict[str, Any] = json.loads(line)  # anything else on stdout fails here
            if answer.get("id") in numbers:
                return answer
        raise AssertionError("the server closed its output")

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        return self.answer(self.post(method, **params))

    def start(self) -> dict[str, Any]:
        answer = self.ask(
            "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "test", "version": "0"}
        )
        self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return answer

    def ask_beside_pings(self, method: str, **params: object) -> tuple[dict[str, Any], int]:
        """Ask, and send pings until the answer comes; returns it with how many of them were answered before it."""
        asked, answered = self.post(method, **params), 0
        while (answer := self.answer(asked, self.post("ping")))["id"] != asked:
            answered += 1
            time.sleep(0.02)
        return answer, answered


@contextmanager
def started(root: Path | None = None, *options: str, **variables: str) -> Iterator[Process]:
    """Give a server whose session has begun; it is killed in the end."""
    running = Process(root, *options, **variables)
    with running.process:
        running.start()
        try:
            yield running
        finally:
            running.process.kill()
