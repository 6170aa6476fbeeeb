from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mldebug_mcp import diagnose_run, read_run
from mldebug_mcp.models import State
from mldebug_mcp.recorder import Recorder
from tests.conftest import PATIENCE
from tests.hostile.pickles import CALLS, Calling
from tests.recorder.loops import lines, steps

AN_HOUR = 3600.0
"""Seconds that no machine stands still by itself."""


def wait_for(there: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not there():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


def record_steps(folder: Path, count: int = 20) -> None:
    with Recorder(folder) as recorder:
        for step in range(1, count + 1):
            recorder.put(step, {"loss": 1 / step})


def hangs(path: Path) -> list[dict[str, Any]]:
    return [one for one in lines(path) if one.get("event") in ("hang", "went_on")]


def stands_still(path: Path, step: int) -> bool:
    return any(one["event"] == "hang" and one["step"] == step for one in hangs(path))


def test_a_loop_that_stands_still_leaves_its_stacks_and_says_when_it_goes_on(tmp_path: Path) -> None:
    def stand_still() -> None:
        size = recorder.path.stat().st_size
        recorder._watchdog.since -= 2 * AN_HOUR
        wait_for(lambda: recorder.path.stat().st_size > size)

    with Recorder(tmp_path, hang_after=AN_HOUR) as recorder:
        with recorder.step():
            stand_still()
        with recorder.step():
            recorder.log(loss=1.0)
    hang, went_on = hangs(recorder.path)[:2]
    assert (hang["event"], went_on["event"]) == ("hang", "went_on")
    assert any("in stand_still" in line for line in hang["at"])
    assert "in stand_still" in (tmp_path / hang["stacks"]).read_text(encoding="utf-8")
    said = [str(one) for one in diagnose_run(tmp_path).sheet.events]
    assert any("stand_still" in one for one in said), said


def test_a_recording_whose_last_step_never_ends_falls_silent(tmp_path: Path) -> None:
    record_steps(tmp_path)
    hang = {"step": 21, "event": "hang", "value": 600.0, "stacks": "stacks.dump", "at": ["train.py:7 in forward"]}
    with (tmp_path / "recorder.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(hang) + "\n")
    found = next(one for one in diagnose_run(tmp_path).findings if one.symptom == "log_falls_silent")
    assert found.state is State.PRESENT
    assert "train.py:7 in forward" in found.summary


def test_a_recording_whose_steps_went_on_does_not_fall_silent(tmp_path: Path) -> None:
    record_steps(tmp_path)
    with (tmp_path / "recorder.jsonl").open("a", encoding="utf-8") as file:
        for event in ("hang", "went_on"):
            file.write(json.dumps({"step": 21, "event": event, "value": 600.0}) + "\n")
    found = next(one for one in diagnose_run(tmp_path).findings if one.symptom == "log_falls_silent")
    assert found.state is State.ABSENT


def test_a_watchdog_that_is_switched_off_does_not_look(tmp_path: Path) -> None:
    with Recorder(tmp_path, hang_after=0) as recorder, recorder.step():
        recorder._watchdog.since -= 1e6
        recorder._watchdog.look()
    assert not hangs(recorder.path)


def entry(number: int, name: str, line: int) -> dict[str, object]:
    frames = [
        {"name": "all_reduce", "filename": "/lib/torch/distributed/distributed_c10d.py", "line": 1},
        {"name": "main", "filename": "/home/me/train.py", "line": line},
    ]
    return {
        "collective_seq_id": number, "process_group": ["0", "default_pg"], "profiling_name": f"nccl:{name}",
        "is_p2p": False, "state": "scheduled", "frames": frames,
    }  # fmt: skip


@pytest.mark.parametrize("write", [pickle.dumps, lambda dump: json.dumps(dump).encode()])
def test_the_rank_that_is_behind_is_named_with_the_operation_and_the_line(
    tmp_path: Path, write: Callable[[object], bytes]
) -> None:
    record_steps(tmp_path)
    for rank in range(4):
        done = [entry(number, "all_reduce", 40) for number in range(1, 8 if rank == 2 else 9)]
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(write({"version": "2.10", "entries": done}))
    run = read_run(tmp_path)
    (said,) = [one.text for one in run.incidents]
    assert "rank 2 is behind in group default_pg: not in all_reduce 8, in which 3 of 4 wait at train.py:40" in said
    found = next(one for one in diagnose_run(tmp_path).findings if one.symptom == "collective_timeout")
    assert found.state is State.PRESENT
    assert "rank 2 is behind" in found.summary


def test_ranks_in_different_operations_are_told(tmp_path: Path) -> None:
    record_steps(tmp_path)
    for rank, name in enumerate(["all_reduce", "broadcast"]):
        dump = {"entries": [entry(1, name, 10 + rank)]}
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump))
    (said,) = [one.text for one in read_run(tmp_path).incidents]
    assert "rank 0 in all_reduce at train.py:10, rank 1 in broadcast at train.py:11" in said


@pytest.mark.parametrize(
    "dump",
    [b"", b"\x80", b"{", b'{"entries": 5}', b'{"entries": [5, {}, {"collective_seq_id": "x"}]}', b"[" * 100_000,
     pickle.dumps({"entries": [Calling()]}), pickle.dumps(["x"])],
)  # fmt: skip
def test_dumps_of_any_shape_are_passed_over(tmp_path: Path, dump: bytes) -> None:
    record_steps(tmp_path)
    for rank in range(2):
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(dump)
    assert len(read_run(tmp_path)["loss"]) == 20
    assert not CALLS


def train(rank: int, folder: str, port: int) -> None:
    """Train two steps; in the second one rank does not come to the second sum."""
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ["TORCH_FR_BUFFER_SIZE"] = "100"
    import torch
    from torch import distributed

    distributed.init_process_group("gloo")
    recorder = Recorder(folder, hang_after=AN_HOUR)
    for step in range(2):
        with recorder.step():
            recorder.log(loss=1.0)
            distributed.all_reduce(torch.ones(1))
            waits = distributed.all_reduce(torch.ones(1), async_op=True) if rank == 0 or step == 0 else None
            recorder._watchdog.since -= 2 * AN_HOUR * step
            while waits is None:
                time.sleep(0.1)
            waits.wait()


def test_two_ranks_that_wait_for_each_other_are_told_apart_by_their_own_dumps(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    start = multiprocessing.get_context("spawn").Process
    both = [start(target=train, args=(rank, str(tmp_path), port)) for rank in range(2)]
    for one in both:
        one.start()
    files = [tmp_path / f"recorder.rank{rank}.jsonl" for rank in range(2)]
    try:
        wait_for(lambda: all(file.exists() and stands_still(file, step=2) for file in files))
    finally:
        for one in both:
            if one.pid is not None and one.is_alive():
                os.kill(one.pid, signal.SIGKILL)
            one.join()
    assert [len(steps(file)) for file in files] == [1, 1]
    said = [one.text for one in read_run(tmp_path).incidents]
    assert any("rank 1 is behind" in one and "not in all_reduce 4" in one for one in said), said
    assert any("in train" in one for one in said), said
