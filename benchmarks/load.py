"""Thousands of mixed calls to one server: does one fail, does memory grow, do small diagnoses become slow?

    python -m benchmarks.load [--calls 10000] [--hostile] [--http [--at-once 100]]

All cheap tools, small diagnoses, resources, errors, unknown tools, bad arguments and cancelled calls are mixed by a
fixed seed. Over stdio they go through one session, one after another, and a small diagnosis in the mix is compared with
the median of the same call alone in the same session: by the wall clock, and by the CPU time of the server, for on a
busy machine the wall clock says more about the machine. With --http many sessions call at once. With --hostile every
tenth call names a file that is refused, or takes more time than it may (`tests/hostile`), and memory may grow by a
tenth; over stdio the server is pinged again and again while it answers such a call.

Exits with 1 if a call did not end as it should, if the resident memory after the warm-up and at the end differ by more
than 5 %, or if, over stdio, the 99th percentile of the small diagnosis is more than 3 times the call alone by both
clocks (without --hostile) or that of the pings is more than 100 ms (with it).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from tests.http_process import TOKEN, http_server
from tests.stdio_process import Process

EXAMPLES = Path(__file__).parent.parent / "examples"
ALONE = 50
"""Small diagnoses that are timed alone."""
WARM_UP = 0.2
"""Part of the calls after which memory should have stopped growing: by then each kind was called often."""
MEMORY_GROWTH, SLOWDOWN = 1.05, 3.0
HOSTILE_GROWTH = 1.1
HOSTILE = 10
"""Calls of which one is hostile, with --hostile."""
PING_MILLISECONDS, PING_EVERY = 100.0, 0.05
"""What a ping may take beside a hostile call, and the seconds between two."""
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "load", "version": "0"}}
MESSAGE = "RuntimeError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.15 GiB"


@dataclass(frozen=True)
class Call:
    """A request, and how it should end: `answer`, `refused` (by the tool), `error` (by the protocol) or `cancelled`."""

    kind: str
    method: str
    params: dict[str, Any]
    outcome: str = "answer"


@dataclass(frozen=True)
class Timed:
    """How a call ended, and its milliseconds: by the wall clock, and of the server's CPU."""

    outcome: str
    wall: float
    cpu: float


@dataclass
class Load:
    """What was measured.

    Args:
        milliseconds: Wall time by kind of call.
        failures: The calls that did not end as they should.
        warm_bytes: Resident memory after the warm-up.
        end_bytes: Resident memory at the end.
        alone: Small diagnoses alone, over stdio.
        mixed: Small diagnoses in the mix.
        pings: Milliseconds of pings beside hostile calls, over stdio.
    """

    milliseconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failures: list[str] = field(default_factory=list)
    warm_bytes: int = 0
    end_bytes: int = 0
    alone: list[Timed] = field(default_factory=list)
    mixed: list[Timed] = field(default_factory=list)
    pings: list[float] = field(default_factory=list)

    def note(self, call: Call, outcome: str, milliseconds: float) -> None:
        """Take down how a call ended."""
        self.milliseconds[call.kind].append(milliseconds)
        if outcome.partition(":")[0] != call.outcome:
            self.failures.append(f"{call.kind}: {outcome} instead of {call.outcome}: {json.dumps(call.params)[:200]}")


def tool(name: str, outcome: str = "answer", kind: str = "", **arguments: object) -> Call:
    """Return the call of a tool."""
    return Call(kind or name, "tools/call", {"name": name, "arguments": arguments}, outcome)


def kinds_of_calls(folder: Path) -> list[list[Call]]:
    """Return the calls of the mix by kind; the files that they need are written into a folder."""
    batch, config, oom = folder / "batch.jsonl", folder / "config.json", folder / "oom.txt"
    row = {"input_ids": [1, 5, 6, 7, 2], "labels": [-100, 5, 6, 7, 2], "attention_mask": [1] * 5}
    batch.write_text("".join(json.dumps(row) + "\n" for _ in range(20)))
    config.write_text(
        json.dumps(
            {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
             "num_attention_heads": 4, "vocab_size": 1000, "max_position_embeddings": 128}
        )
    )  # fmt: skip
    oom.write_text(MESSAGE)
    ids = ("loss_spike", "lr_too_high", "menu_loss_spiked", "prompt_not_masked", "overfitting")
    questions = ("why did my loss spike", "reward stays at zero", "NaN after warmup", "dead relu", "gradient clipping")
    return [
        [small_diagnosis()],
        [tool("diagnose_run", path=str(EXAMPLES / run), detail="full") for run in ("loss_spike", "nan_loss")],
        [tool("explain", id=one) for one in ids],
        [tool("search_folklore", query=one) for one in questions],
        [tool("explain_error", text=MESSAGE), tool("explain_error", text="something that nobody has seen")],
        [tool("update_diagnosis", findings={"loss_spike": "present"}, outcomes={"lr_too_high.1": "refutes"})],
        [tool("inspect_batch", path=str(batch))],
        [tool("estimate_memory", config=str(config))],
        [tool("check_memory", path=str(oom))],
        [Call("list", "tools/list", {}), Call("list", "resources/list", {}), Call("list", "prompts/list", {})],
        [Call("read", "resources/read", {"uri": f"mldebug://{one}"}) for one in ("causes", "cause/lr_too_high")],
        [
            tool("diagnose_run", "refused", "missing file", path=str(folder / "none.jsonl")),
            tool("inspect_batch", "refused", "not a batch", path=str(oom)),
            tool("explain", "refused", "unknown id", id="no_such_id\u202e"),
        ],
        [
            tool("diagnose_run", "refused", "bad arguments", file="x"),
            tool("search_folklore", "refused", "bad arguments", query=3, limit="x" * 5000),
            tool("probe_overfit", "refused", "bad arguments", steps=0),
        ],
        [tool("no_such_tool", "refused", "unknown"), Call("unknown", "no/such", {}, "error")],
        [
            Call("cancelled", one.method, one.params, "cancelled")
            for one in (small_diagnosis(), tool("search_folklore", query="loss spike"))
        ],
    ]  # fmt: skip


def small_diagnosis() -> Call:
    """Return the call that is timed."""
    return tool("diagnose_run", kind="small diagnosis", path=str(EXAMPLES / "overfit" / "metrics.csv"))


def hostile_calls(folder: Path) -> list[Call]:
    """Return calls that take more than they may, or name YAML that says too much; writes the files into a folder."""
    from tests.hostile.files import template
    from tests.hostile.yaml_texts import TEXTS

    (folder / "template").mkdir()
    made = [tool("inspect_batch", "refused", "hostile template", **template(folder / "template", rounds=5000))]
    for number, (what, text) in enumerate(TEXTS.items()):
        config = folder / f"hostile{number}.yaml"
        config.write_text(text)
        arguments = {"path": str(EXAMPLES / "overfit" / "metrics.csv"), "config": str(config)}
        made.append(tool("diagnose_run", "answer" if what == "a call" else "refused", "hostile YAML", **arguments))
    return made


def mixed(folder: Path, count: int, *, hostile: bool = False) -> Iterator[Call]:
    """Yield calls: every fourth a small diagnosis, the others of all kinds, if wished every tenth hostile."""
    chance = random.Random(0)  # noqa: S311 - the same mix at each run
    kinds = kinds_of_calls(folder)
    attacks = hostile_calls(folder) if hostile else []
    for number in range(count):
        if attacks and number % HOSTILE == HOSTILE - 1:
            yield chance.choice(attacks)
        else:
            yield chance.choice(kinds[0] if number % 4 == 0 else chance.choice(kinds))


def outcome_of(answer: dict[str, Any]) -> str:
    """Return how a call ended, and behind a colon what was said if it was no answer."""
    if "error" in answer:
        return f"error: {answer['error'].get('message', '')}"
    result = answer["result"]
    return f"refused: {result['content'][0]['text']}" if result.get("isError") else "answer"


def resident_bytes(process: int) -> int:
    """Return the resident memory of a process (Linux)."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cpu_milliseconds(process: int) -> float:
    """Return the CPU time of the living threads of a process (Linux)."""
    nanoseconds = 0
    for file in Path(f"/proc/{process}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # a thread that has just ended
            nanoseconds += int(file.read_text().split()[0])
    return nanoseconds / 1e6


def roots(folder: Path) -> list[str]:
    """Return the options that let a server read the examples and a folder."""
    return [part for root in (EXAMPLES, folder) for part in ("--root", str(root))]


class StdioSession(Process):
    """One session over standard input and output, whose calls are timed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(None, *roots(folder))
        self.pings: list[float] = []
        self.start()

    def do(self, call: Call) -> str:
        """Make a call and return how it ended; while it names a hostile file, time one ping after the other."""
        number = self.post(call.method, **call.params)
        if call.outcome == "cancelled":
            message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}
            self.send(json.dumps(message).encode())
            return "cancelled"
        while call.kind.startswith("hostile"):
            began = time.perf_counter()
            if (answer := self.answer(number, self.post("ping")))["id"] == number:
                return outcome_of(answer)
            self.pings.append(1000 * (time.perf_counter() - began))
            time.sleep(PING_EVERY)
        return outcome_of(self.answer(number))

    def timed(self, call: Call) -> Timed:
        """Make a call and time it."""
        cpu, began = cpu_milliseconds(self.process.pid), time.perf_counter()
        outcome = self.do(call)
        wall = 1000 * (time.perf_counter() - began)
        return Timed(outcome, wall, max(0.0, cpu_milliseconds(self.process.pid) - cpu))


def over_stdio(calls: Iterable[Call], count: int, folder: Path) -> Load:
    """Make calls one after another through one session."""
    found = Load()
    session = StdioSession(folder)
    with session.process as process:
        found.alone = [session.timed(small_diagnosis()) for _ in range(ALONE)]
        for number, call in enumerate(calls):
            timed = session.timed(call)
            found.note(call, timed.outcome, timed.wall)
            if call.kind == "small diagnosis":
                found.mixed.append(timed)
            if number == int(WARM_UP * count):
                found.warm_bytes = resident_bytes(process.pid)
        found.end_bytes, found.pings = resident_bytes(process.pid), session.pings
        assert process.stdin is not None
        process.stdin.close()
        if process.wait(timeout=10):
            found.failures.append(f"the server ended with {process.returncode}")
    return found


class HttpSession:
    """One session over HTTP."""

    def __init__(self, url: str, client: httpx2.AsyncClient) -> None:
        self.url, self.client = url, client
        self.numbers = itertools.count(1)
        self.headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}

    async def start(self) -> None:
        """Begin the session."""
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}
        answer = await self.client.post(self.url, json=message, headers=self.headers)
        self.headers["Mcp-Session-Id"] = answer.raise_for_status().headers["Mcp-Session-Id"]
        await self.tell("notifications/initialized", {})

    async def end(self) -> None:
        """End the session."""
        (await self.client.delete(self.url, headers=self.headers)).raise_for_status()

    async def tell(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification."""
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        (await self.client.post(self.url, json=message, headers=self.headers)).raise_for_status()

    async def do(self, call: Call) -> str:
        """Make a call and return how it ended."""
        number = next(self.numbers)
        message = {"jsonrpc": "2.0", "id": number, "method": call.method, "params": call.params}
        asked = asyncio.create_task(self.client.post(self.url, json=message, headers=self.headers))
        if call.outcome == "cancelled":
            await self.tell("notifications/cancelled", {"requestId": number})
            await asked
            return "cancelled"
        answer = (await asked).raise_for_status()
        lines = [line[5:] for line in answer.text.splitlines() if line.startswith("data:")]
        return outcome_of(json.loads(lines[-1]))


async def over_http(calls: Iterable[Call], count: int, at_once: int, folder: Path) -> Load:
    """Make calls from many sessions at once."""
    found = Load()
    limits = httpx2.Limits(max_connections=2 * at_once)
    with http_server(*roots(folder)) as server:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(headers=headers, limits=limits, timeout=120) as client:
            waiting = enumerate(calls)

            async def work() -> None:
                session = HttpSession(server.url, client)
                await session.start()
                for number, call in waiting:
                    began = time.perf_counter()
                    try:
                        outcome = await session.do(call)
                    except httpx2.HTTPError as error:
                        outcome = f"{type(error).__name__} {error}"
                    found.note(call, outcome, 1000 * (time.perf_counter() - began))
                    if number == int(WARM_UP * count):
                        found.warm_bytes = resident_bytes(server.process.pid)
                await session.end()

            await asyncio.gather(*(work() for _ in range(at_once)))
        found.end_bytes = resident_bytes(server.process.pid)
    return found


def percentile(values: Sequence[float], part: float) -> float:
    """Return the value below which a part of the values lies."""
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def report(found: Load, *, hostile: bool) -> bool:
    """Print what was measured, and tell whether it is as it should be."""
    print(f"{'call':<18} {'count':>6} {'median ms':>10} {'p99 ms':>10}")
    for kind, values in sorted(found.milliseconds.items()):
        print(f"{kind:<18} {len(values):>6} {statistics.median(values):>10.1f} {percentile(values, 0.99):>10.1f}")
    growth, most_growth = found.end_bytes / found.warm_bytes, HOSTILE_GROWTH if hostile else MEMORY_GROWTH
    checks = [
        (f"calls that did not end as they should: {len(found.failures)}", not found.failures),
        (
            f"memory after warm-up {found.warm_bytes / 1e6:.0f} MB, at the end {found.end_bytes / 1e6:.0f} MB: "
            f"x {growth:.3f} (at most {most_growth})",
            growth <= most_growth,
        ),
    ]
    if found.alone and not hostile:  # a call behind a hostile one waits for a new helper
        checks.append(slowdown(found))
    if found.pings:
        slowest = percentile(found.pings, 0.99)
        told = f"{len(found.pings)} pings beside hostile calls: {statistics.median(found.pings):.1f} ms (median)"
        told += f", {slowest:.1f} ms (p99), {max(found.pings):.1f} ms (slowest); at most {PING_MILLISECONDS:g} ms (p99)"
        checks.append((told, slowest <= PING_MILLISECONDS))
    for told, holds in checks:
        print(f"{'ok  ' if holds else 'FAIL'} {told}")
    for failure in found.failures[:10]:
        print("    ", failure)
    return all(holds for _, holds in checks)


def slowdown(found: Load) -> tuple[str, bool]:
    """Return how much slower the slowest small diagnoses of the mix are than one alone, and whether that will do."""
    ratios = {}
    for clock in ("wall", "cpu"):
        alone = statistics.median(getattr(one, clock) for one in found.alone)
        slowest = percentile([getattr(one, clock) for one in found.mixed], 0.99)
        ratios[f"{clock} {alone:.1f} and {slowest:.1f} ms"] = slowest / alone
    told = ", ".join(f"{name}: x {ratio:.2f}" for name, ratio in ratios.items())
    return f"small diagnosis alone (median) and in the mix (p99): {told} (at most {SLOWDOWN})", min(
        ratios.values()
    ) <= SLOWDOWN


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--hostile", action="store_true", help="let every tenth call name a hostile file")
    parser.add_argument("--http", action="store_true", help="over HTTP, from many sessions at once")
    parser.add_argument("--at-once", type=int, default=100, help="sessions that call at once over HTTP (default 100)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        calls = mixed(folder, options.calls, hostile=options.hostile)
        if options.http:
            found = asyncio.run(over_http(calls, options.calls, options.at_once, folder))
        else:
            found = over_stdio(calls, options.calls, folder)
    return 0 if report(found, hostile=options.hostile) else 1


if __name__ == "__main__":
    sys.exit(main())
