"""Long work tells its progress, and ends when its call is cancelled."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from mcp import Client

from mldebug_mcp.core.limits import checkpoint, listening
from mldebug_mcp.judge import diagnose_run
from mldebug_mcp.judge.batch import inspect_batch
from mldebug_mcp.judge.explain_error import explain_error
from mldebug_mcp.judge.memory import check_memory
from mldebug_mcp.models import Diagnosis
from mldebug_mcp.server import isolated as reports
from tests.conftest import PATIENCE
from tests.memory import scenarios


class Stop(BaseException):
    """What a listener raises once nobody waits for the answer."""


class StopAt:
    """Ends the work at its checkpoint number `last`."""

    def __init__(self, last: int) -> None:
        self.left = last

    def __call__(self, doing: str) -> None:
        self.left -= 1
        if self.left < 0:
            raise Stop(doing)


def as_json_lines(folder: Path) -> Path:
    path = folder / "log.jsonl"
    path.write_text("".join(f'{{"step": {i}, "loss": 2.5}}\n' for i in range(40)))
    return path


def as_trainer_state(folder: Path) -> Path:
    path = folder / "trainer_state.json"
    path.write_text(json.dumps({"log_history": [{"step": i, "loss": 2.5} for i in range(40)]}))
    return path


def as_table(folder: Path) -> Path:
    path = folder / "log.csv"
    path.write_text("step,loss\n" + "".join(f"{i},2.5\n" for i in range(40)))
    return path


def as_text(folder: Path) -> Path:
    path = folder / "train.log"
    path.write_text("".join(f"iter {i}: loss 2.5000, time 12ms\n" for i in range(40)))
    return path


def as_batch(folder: Path) -> Path:
    path = folder / "batch.jsonl"
    path.write_text('{"input_ids": [1, 2, 3], "labels": [1, 2, 3]}\n' * 5)
    return path


def as_snapshot(folder: Path) -> Path:
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(scenarios.snapshot_of(scenarios.leak())))
    return path


WORK: list[tuple[Callable[[Path], object], Callable[[Path], Path], int]] = [
    (diagnose_run, as_json_lines, 50),
    (diagnose_run, as_trainer_state, 50),
    (diagnose_run, as_table, 50),
    (diagnose_run, as_text, 50),
    (lambda path: inspect_batch(path, purpose="pretraining"), as_batch, 1),
    (check_memory, as_snapshot, 10),
    (lambda path: explain_error(path.read_text()), as_text, 1),
]


@pytest.mark.parametrize(("verb", "write", "least"), WORK, ids=[write.__name__ for _, write, _ in WORK])
def test_work_can_be_left_at_each_checkpoint_and_nothing_on_the_way_takes_that_for_a_failure(
    tmp_path: Path, verb: Callable[[Path], object], write: Callable[[Path], Path], least: int
) -> None:
    path = write(tmp_path)
    passed: list[str] = []
    with listening(passed.append):
        verb(path)
    assert len(passed) >= least
    for last in {0, len(passed) // 2, len(passed) - 1}:
        with listening(StopAt(last)), pytest.raises(Stop):
            verb(path)


def test_without_a_listener_nothing_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    with listening(told.append):
        pass
    checkpoint("said to nobody")
    assert diagnose_run(as_json_lines(tmp_path)).run.records == 40
    assert not told


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_cancelling_a_call_ends_its_thread_and_the_server_lives_on(
    monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    from mldebug_mcp import judge
    from mldebug_mcp.server import make_server

    begun, ended = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def works_for_ever(*_: object, **__: object) -> None:
        loop.call_soon_threadsafe(begun.set)
        try:
            while True:
                checkpoint("working")
        finally:
            ended.set()

    monkeypatch.setattr(judge, "diagnose_run", works_for_ever)
    async with Client(make_server(), mode=mode) as client:
        call = asyncio.create_task(client.call_tool("diagnose_run", {"path": "log.jsonl"}))
        async with asyncio.timeout(PATIENCE):
            await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await asyncio.to_thread(ended.wait, PATIENCE)
        assert (await client.list_tools()).tools


@pytest.mark.anyio
async def test_a_long_call_says_every_second_what_it_does(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mldebug_mcp import judge

    monkeypatch.setattr(reports, "MESSAGE_INTERVAL_SECONDS", 0.001)
    told: list[tuple[float, str]] = []
    enough = threading.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        del total
        told.append((progress, message or ""))
        if message == "the second half" and len(told) > 3:
            enough.set()

    def works(*_: object, **__: object) -> Diagnosis:
        checkpoint("the first half")
        checkpoint("the second half")
        assert enough.wait(PATIENCE)
        return diagnose_run(as_json_lines(tmp_path))

    monkeypatch.setattr(judge, "diagnose_run", works)
    result = await client.call_tool("diagnose_run", {"path": "log.jsonl"}, progress_callback=note)

    assert not result.is_error
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert told[-1][1]


@pytest.mark.anyio
async def test_a_quick_call_says_nothing_on_its_way(client: Client) -> None:
    told: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        del total, message
        told.append(progress)

    await client.call_tool("explain", {"id": "loss_spike"})
    await client.call_tool("explain", {"id": "loss_spike"}, progress_callback=note)
    assert not told
