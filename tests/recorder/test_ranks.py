from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mldebug_mcp import diagnose_run, read_run
from mldebug_mcp.models import Finding, State
from mldebug_mcp.recorder import Recorder

STEPS = 60


def record(
    folder: Path, world: int, monkeypatch: pytest.MonkeyPatch, told: Callable[[int, int], dict[str, float]]
) -> None:
    """Record a run of several ranks, each in an environment of its own."""
    monkeypatch.setenv("WORLD_SIZE", str(world))
    for rank in range(world):
        monkeypatch.setenv("RANK", str(rank))
        with Recorder(folder) as recorder:
            assert recorder.path.name == f"recorder.rank{rank}.jsonl"
            for step in range(1, STEPS + 1):
                recorder.put(step, {"loss": 2 / step + 0.01 * rank, **told(rank, step)})


def rank_differs(folder: Path) -> Finding:
    return next(one for one in diagnose_run(folder).findings if one.symptom == "rank_differs")


def test_the_recordings_of_all_ranks_are_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(tmp_path, 3, monkeypatch, lambda rank, step: {"grad_norm": 1 / step, "time/step_s": 0.1 * (rank + 1)})
    run = read_run(tmp_path)
    assert run["loss"].value[0] == 2.0
    assert run["loss/rank_2"].value[0] == pytest.approx(2.02)
    assert run["step_time_s/rank_1"].value[0] == 0.2
    assert run.records == STEPS
    assert run.setting("world_size") == 3
    assert any("3 ranks" in note for note in run.notes)


def test_a_slow_rank_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(tmp_path, 4, monkeypatch, lambda rank, step: {"time/step_s": 0.2 if rank == 2 else 0.1 + 1e-4 * (step % 3)})
    found = rank_differs(tmp_path)
    assert found.state is State.PRESENT
    assert "rank 2" in found.summary


@pytest.mark.parametrize("world", [2, 4])
def test_ranks_whose_gradients_part_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world: int) -> None:
    def told(rank: int, step: int) -> dict[str, float]:
        return {"grad_norm": (1 + (0.3 if rank == 1 and step >= 40 else 0)) / step}

    record(tmp_path, world, monkeypatch, told)
    found = rank_differs(tmp_path)
    assert found.state is State.PRESENT
    assert "up to step 39 and differs from step 40 on" in found.summary
    assert found.steps == [40]


def test_norms_of_shards_that_differ_from_the_start_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(tmp_path, 4, monkeypatch, lambda rank, step: {"grad_norm": (1 + 0.2 * rank) / step})
    assert rank_differs(tmp_path).state is not State.PRESENT


def test_norms_that_agree_are_none_and_no_layers_of_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(tmp_path, 8, monkeypatch, lambda _rank, step: {"grad_norm": 1 / step})
    findings = {one.symptom: one.state for one in diagnose_run(tmp_path).findings}
    assert findings["rank_differs"] is not State.PRESENT
    assert findings["grad_part_zero"] is State.UNKNOWN
