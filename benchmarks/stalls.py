"""How long a server over stdio leaves a ping unanswered while it is busy with what clients do rarely, and all at once.

    python -m benchmarks.stalls

Each stall stands beside the longest ping of an idle server, measured in the same minute.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from pathlib import Path
from queue import Queue
from typing import Any

from tests.stdio_process import Process

CALLS = 200
PINGS = 40
EVERY = 0.02
"""Seconds between the answer to a ping and the next ping."""


class Client:
    """A client whose answers are read by a thread of its own.

    Args:
        root: The folder that the server may read.
    """

    def __init__(self, root: Path) -> None:
        self.server = Process(root)
        self.server.start()
        self.number = 1000
        self._answers: Queue[dict[str, Any]] = Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, method: str, number: int | None = None, **params: object) -> None:
        """Send a request, or without a number a notification."""
        about = {} if number is None else {"id": number}
        self.server.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **about}).encode())

    def longest_ping(self, until: int | None = None) -> float:
        """Return the longest time of a ping in seconds: of `PINGS`, or of those up to the answer to a request."""
        longest, left = 0.0, PINGS
        while left:
            self.number += 1
            began = time.perf_counter()
            self.send("ping", self.number)
            while (answer := self._answers.get().get("id")) != self.number:
                left = 1 if answer == until else left
            longest = max(longest, time.perf_counter() - began)
            left -= 1 if until is None or left == 1 else 0
            time.sleep(EVERY)
        return longest

    def _read(self) -> None:
        assert self.server.process.stdout
        for line in self.server.process.stdout:
            self._answers.put(json.loads(line))


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        log.write_text("".join(f'{{"step": {step}, "loss": {4 - step / 50}}}\n' for step in range(1, 40)))
        batch = Path(folder) / "batch.json"
        batch.write_text(json.dumps({"input_ids": [[1, 5, 6, 7]] * 4, "labels": [[1, 5, 6, 7]] * 4}))
        client = Client(Path(folder))
        idle = client.longest_ping()
        client.send(
            "tools/call", 1, name="probe_overfit", arguments={"batch": str(batch), "device": "cpu", "time_limit": 60}
        )
        probe = client.longest_ping(until=1)
        for number in range(2, CALLS + 2):
            client.send("tools/call", number, name="diagnose_run", arguments={"path": str(log)})
        for number in range(2, CALLS + 2):
            client.send("notifications/cancelled", requestId=number)
        cancelled = client.longest_ping()
        client.server.process.kill()
    print(f"longest ping of an idle server: {idle * 1000:.0f} ms")
    print(f"during a first probe: {probe * 1000:.0f} ms, {probe / idle:.0f} times that")
    print(f"after {CALLS} cancellations at once: {cancelled * 1000:.0f} ms, {cancelled / idle:.0f} times that")


if __name__ == "__main__":
    main()
