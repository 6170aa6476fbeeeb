"""The server as a real process over stdio, spoken to in hand-written JSON-RPC, one message per line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
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

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        self.number += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}).encode())
        assert self.process.stdout
        for line in self.process.stdout:
            answer: dict[str, Any] = json.loads(line)  # anything else on stdout fails here
            if answer.get("id") == self.number:
                return answer
        raise AssertionError("the server closed its output")

    def start(self) -> dict[str, Any]:
        answer = self.ask(
            "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "test", "version": "0"}
        )
        self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return answer

    def ask_beside_pings(self, method: str, **params: object) -> tuple[dict[str, Any], int]:
        """Ask, and send pings until the answer comes; returns it with how many of them were answered before it."""
        self.number += 1
        asked, answered = self.number, 0
        self.send(json.dumps({"jsonrpc": "2.0", "id": asked, "method": method, "params": params}).encode())
        while True:
            self.number += 1
            self.send(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": "ping"}).encode())
            assert self.process.stdout
            for line in self.process.stdout:
                answer: dict[str, Any] = json.loads(line)
                if answer.get("id") == asked:
                    return answer, answered
                if answer.get("id") == self.number:
                    answered += 1
                    break
            else:
                raise AssertionError("the server closed its output")
            time.sleep(0.02)
