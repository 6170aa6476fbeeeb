from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import run_of, seen, state

SEEDS = range(3)


def calm(seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return 1 + 2 * np.exp(-np.arange(300) / 60) + np.random.default_rng(seed).normal(0, 0.03, 300)


def spiked(*at: int, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    curve = calm(seed)
    curve[list(at)] += 4
    return curve


@pytest.mark.parametrize("seed", SEEDS)
def test_loss_spikes_recur_is_seen(seed: int) -> None:
    assert state("loss_spikes_recur", run_of(loss=spiked(80, 150, 230, seed=seed))) is State.PRESENT


@pytest.mark.parametrize("seed", SEEDS)
def test_loss_spikes_recur_is_absent_where_the_loss_jumps_otherwise(seed: int) -> None:
    assert state("loss_spikes_recur", run_of(loss=spiked(150, seed=seed))) is State.ABSENT


@pytest.mark.parametrize("seed", SEEDS)
def test_loss_spikes_recur_is_not_judged_where_the_loss_does_not_jump(seed: int) -> None:
    assert state("loss_spikes_recur", run_of(loss=calm(seed))) is State.UNKNOWN


def test_each_jump_is_told_with_its_step_height_and_width() -> None:
    finding = seen("loss_spikes_recur", run_of(loss=spiked(80, 150, 230)))
    assert "70 to 80 steps apart" in finding.summary
    assert "at 81 from " in finding.summary
    assert finding.values["highest"] == pytest.approx(4, abs=0.3)
    assert finding.values["widest_records"] <= 3
