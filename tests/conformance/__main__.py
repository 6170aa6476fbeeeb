"""Run the official conformance suite, in both versions, against our server: `python -m tests.conformance`.

The server is ours with the suite's fixtures added, over streamable HTTP on a free port. `expected-failures.yaml` lists
what we do not offer, each with its reason; anything else that fails, or anything listed there that passes, is a
failure. Needs Node 22 or newer and the npm registry.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from mldebug_mcp.server import make_server
from tests.conformance.fixtures import add_fixtures

PACKAGE = "@modelcontextprotocol/conformance"
BASELINE = Path(__file__).parent / "expected-failures.yaml"
NEXT = "0.2.0-alpha.12"
RUNS = (
    ("0.1.16",),
    (NEXT,),
    (NEXT, "--requirements", "2026-07-28"),
    *((NEXT, "--scenario", f"sep-2640-skills-{part}") for part in ("enumeration", "manifest", "directory")),
)
"""Version of the suite and its options: the handshake's scenarios, those of 2026-07-28, and the skills over MCP."""


@contextmanager
def served() -> Iterator[str]:
    """Serve our server with the fixtures; yields its address."""
    server = make_server()
    add_fixtures(server)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        http = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error"))
        thread = threading.Thread(target=http.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        http.should_exit = True
        thread.join(timeout=10)


def main() -> int:
    """Run everything; returns how many runs failed."""
    failed = 0
    with served() as address:
        for version, *options in RUNS:
            suite = ["npx", "-y", f"{PACKAGE}@{version}", "server", "--url", address]
            done = subprocess.run(
                [*suite, "--expected-failures", str(BASELINE), *options], capture_output=True, text=True, check=False
            )
            total = next((line for line in done.stdout.splitlines() if line.startswith(("Total:", "Passed:"))), "")
            print(f"conformance {' '.join((version, *options))}: {'FAILED' if done.returncode else 'ok'}. {total}")
            if done.returncode:
                print(done.stdout, done.stderr)
            failed += bool(done.returncode)
    return failed


if __name__ == "__main__":
    sys.exit(main())
