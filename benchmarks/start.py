"""How long until the server has answered `tools/list`, beside a minimal server made with the same SDK.

    python benchmarks/start.py [--starts 9]

Both are started in turn by the same interpreter. CPU seconds of the whole process are compared, because wall time says
more about the machine than about the server; the ratio is that of the medians. What either prints to standard output
that is no protocol message is counted.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

MINIMAL = """
from mcp.server import MCPServer
server = MCPServer("minimal", log_level="WARNING")
@server.tool()
async def ping(text: str = "x") -> str:
    "Return the text."
    return text
server.run("stdio")
"""
COMMANDS = {"minimal": [sys.executable, "-c", MINIMAL], "mldebug-mcp": [sys.executable, "-m", "mldebug_mcp"]}
ASKED = (
    {
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "b", "version": "0"}},
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
)


@dataclass(frozen=True)
class Start:
    """One start: seconds of CPU and of wall time to the end of the process, and lines that are no protocol."""

    cpu: float
    wall: float
    noise: int


def start(command: list[str]) -> Start:
    """Start a server, list its tools, close its input and wait for its end."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    # With compiled bytecode, as an installed package has it: the start that is not counted writes it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for message in ASKED:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()
    noise = 0
    for line in process.stdout:
        try:
            answer = json.loads(line)
        except ValueError:
            noise += 1
            continue
        if answer.get("id") == 2:
            break
    wall = time.perf_counter() - began
    process.stdin.close()
    noise += sum(1 for line in process.stdout if not line.startswith(b'{"jsonrpc"'))
    process.wait()
    process.stdout.close()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Start(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall, noise)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=9, help="counted starts of each server, after one that is not")
    starts = parser.parse_args().starts
    seen: dict[str, list[Start]] = {name: [] for name in COMMANDS}
    for number in range(starts + 1):
        for name, command in COMMANDS.items():
            one = start(command)
            if number:
                seen[name].append(one)
    print(f"{'server':<12} {'CPU s':>8} {'wall s':>8} {'noise lines':>12}   (medians of {starts} starts)")
    cpu = {name: statistics.median(one.cpu for one in ones) for name, ones in seen.items()}
    for name, ones in seen.items():
        wall, noise = statistics.median(one.wall for one in ones), sum(one.noise for one in ones)
        print(f"{name:<12} {cpu[name]:>8.3f} {wall:>8.3f} {noise:>12}")
    print(f"CPU of mldebug-mcp / minimal: {cpu['mldebug-mcp'] / cpu['minimal']:.3f}")


if __name__ == "__main__":
    main()
