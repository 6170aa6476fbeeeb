"""A client as its own process: it starts the server as its child, asks, and prints what it got."""

from __future__ import annotations

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters


async def main(mode: str, run: str) -> None:
    server = StdioServerParameters(command=sys.executable, args=["-m", "mldebug_mcp"], env=dict(os.environ))
    async with Client(server, mode=mode) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        diagnosis = (await client.call_tool("diagnose_run", {"path": run})).structured_content
        assert diagnosis is not None
        call = diagnosis["next_step"]
        followed = await client.call_tool(call["tool"], call["arguments"])
        prompt = await client.get_prompt("debug_training_run", {"path": run})
        skill = await client.read_resource("skill://mldebug/SKILL.md")
        answer = {
            "version": str(client.protocol_version),
            "tools": tools,
            "cause": diagnosis["hypotheses"][0]["cause"],
            "followed": followed.structured_content,
            "prompt": prompt.messages[0].content.text,  # type: ignore[union-attr]
            "skill": skill.contents[0].text,  # type: ignore[union-attr]
        }
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
