from __future__ import annotations

import time
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from benchmarks.recorder.kills import ALLOWED, kill

from mldebug_mcp.recorder import Recorder
from tests.recorder.loops import steps


@pytest.mark.parametrize("after", [0.2, 0.9, 1.7])
def test_what_was_recorded_outlives_a_kill(tmp_path: Path, after: float) -> None:
    reads, _ = kill(tmp_path / "run", after)
    assert reads


def test_a_loop_writes_by_itself_what_is_older_than_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mldebug_mcp.recorder.recorder.WRITE_INTERVAL_SECONDS", 3600.0)
    ticks = count()
    clock = SimpleNamespace(time=time.time, perf_counter=lambda: 0.01 * next(ticks))
    monkeypatch.setattr("mldebug_mcp.recorder.recorder.time", clock)
    over: list[float] = []
    with Recorder(tmp_path) as recorder:
        while len(over) < 300:
            with recorder.step():
                recorder.log(loss=1.0)
            over.append(clock.perf_counter())
            written = len(steps(recorder.path))
            assert over[-1] - over[max(written - 1, 0)] <= ALLOWED
