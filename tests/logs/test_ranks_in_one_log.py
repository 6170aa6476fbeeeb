"""Ranks that print into one log: one of them is the run, and the others are compared with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.logs.reading import read

from mldebug_mcp.judge.diagnosis import diagnose


def rank_lines(odd: int, level: float) -> str:
    losses = np.random.default_rng(0).normal(2.1, 0.01, (400, 4))
    losses[:, odd] += level
    return "".join(
        f"[rank{rank}] step={41000 + step} local_loss={losses[step, rank]:.4f} data_ms={4 + rank / 10}\n"
        for step in range(400)
        for rank in range(4)
    )


def test_the_losses_of_ranks_that_print_into_one_log_are_compared(tmp_path: Path) -> None:
    run = read(tmp_path, rank_lines(odd=2, level=2.1))
    assert {f"loss/rank_{rank}" for rank in range(4)} <= run.series.keys()
    assert len(run["loss/rank_2"]) == 400
    diagnosis = diagnose(run)
    odd = next(one for one in diagnosis.present if one.summary.startswith("loss of rank 2 is"))
    assert "of the other 3 ranks" in odd.summary
    assert "losses, gradient norms, times and throughputs are compared" in " ".join(run.notes)


def test_ranks_that_print_the_same_are_one(tmp_path: Path) -> None:
    text = "".join(f"[rank{rank}] step={step} loss=2.{step}\n" for step in range(1, 9) for rank in range(3))
    assert [name for name in read(tmp_path, text).series if "rank" in name] == []
