from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp.logs import read_run
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, run_of_records, seen, state


def resumed(factor: float, at: int = 150, seed: int = 0, again: int = 120) -> list[dict[str, object]]:
    loss = noisy(decay(300), 0.03, seed)
    first = [{"step": step + 1, "loss": loss[step]} for step in range(at)]
    healing = 1 + (factor - 1) * np.exp(-np.arange(300 - again) / 40)
    second = [{"step": step + 1, "loss": loss[step] * 1.01 * healing[step - again]} for step in range(again, 300)]
    return [*first, *second]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("factor", [1.4, 2.0, 0.6])
def test_a_jump_up_or_down_where_a_run_goes_on_is_present(factor: float, seed: int) -> None:
    finding = seen("loss_jump_at_resume", run_of_records(resumed(factor, seed=seed)))
    assert finding.state is State.PRESENT
    assert finding.steps[0] == 121


@pytest.mark.parametrize("seed", range(10))
def test_a_smooth_resume_is_absent(seed: int) -> None:
    assert state("loss_jump_at_resume", run_of_records(resumed(1.0, seed=seed))) is State.ABSENT


def test_a_resume_while_the_loss_still_falls_fast_is_absent() -> None:
    loss = 2.7 + 1.5 * np.exp(-np.arange(14) / 5)
    steps = [*range(6), *range(4, 14)]
    rows: list[dict[str, object]] = [{"step": 5 * step + 5, "loss": loss[step]} for step in steps]
    assert state("loss_jump_at_resume", run_of_records(rows)) is State.ABSENT


def test_a_jump_across_a_gap_in_the_steps_is_present() -> None:
    loss = {float(step): 2.0 + 0.01 * (step % 3) for step in range(10, 500, 10)}
    loss |= {float(step): 3.0 + 0.01 * (step % 3) for step in range(900, 1200, 10)}
    assert state("loss_jump_at_resume", run_of(loss=loss)) is State.PRESENT


def test_progress_across_a_gap_is_absent() -> None:
    loss = {float(step): 3.0 + 0.01 * (step % 3) for step in range(10, 500, 10)}
    loss |= {float(step): 2.0 + 0.01 * (step % 3) for step in range(900, 1200, 10)}
    assert state("loss_jump_at_resume", run_of(loss=loss)) is State.ABSENT


def test_another_run_from_the_beginning_is_no_resume() -> None:
    rows = [{"step": step + 1, "loss": value} for _ in range(2) for step, value in enumerate(decay(50))]
    assert state("loss_jump_at_resume", run_of_records(rows)) is State.UNKNOWN


def test_a_run_in_one_piece_cannot_tell() -> None:
    assert state("loss_jump_at_resume", run_of(loss=decay(100))) is State.UNKNOWN


@pytest.mark.parametrize(
    "words", ["Resuming from checkpoint runs/1/ckpt_3000.pt", "=> resumed training from epoch 12", None]
)
def test_a_jump_where_the_log_tells_of_a_resume_is_present(words: str | None, tmp_path: Path) -> None:
    loss = noisy(decay(200, 4.0, 1.2, 8), 0.005)
    loss[120:] += 0.5 * np.exp(-np.arange(80) / 15)
    lines = [f"step {20 * at}: loss {one:.4f}" for at, one in enumerate(loss)]
    (tmp_path / "train.log").write_text("\n".join([*lines[:120], *([words] if words else []), *lines[120:]]) + "\n")
    finding = seen("loss_jump_at_resume", read_run(tmp_path / "train.log"))
    assert (finding.state, finding.steps) == ((State.PRESENT, [2400]) if words else (State.UNKNOWN, []))
