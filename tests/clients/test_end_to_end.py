"""A client as a process of its own starts the server by the configuration that `install` prints, and asks it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

CLIENT = """
import asyncio, json, sys
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

async def main():
    entry = json.load(sys.stdin)
    server = StdioServerParameters(command=entry["command"], args=entry["args"])
    async with Client(stdio_client(server)) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        answer = await client.call_tool("diagnose_run", {"path": "examples/loss_spike"})
        print(json.dumps([tools, answer.structured_content["hypotheses"][0]["cause"]]))

asyncio.run(main())
"""


def test_a_client_process_starts_the_configured_server_and_gets_a_diagnosis() -> None:
    root = Path(__file__).parents[2]
    printed = subprocess.run(
        [sys.executable, "-m", "mldebug_mcp", "install", "cursor", "--print"],
        cwd=root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    entry = json.loads(printed.stdout)["mcpServers"]["mldebug"]
    asked = subprocess.run(
        [sys.executable, "-c", CLIENT], cwd=root, input=json.dumps(entry), capture_output=True, text=True, check=True
    )
    tools, leading = json.loads(asked.stdout)
    assert "diagnose_run" in tools
    assert leading == "bad_batch"
