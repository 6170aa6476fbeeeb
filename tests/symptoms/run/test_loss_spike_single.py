from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, state

SEEDS = range(3)


def calm(seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return 1 + 2 * np.exp(-np.arange(300) / 60) + np.random.default_rng(seed).normal(0, 0.03, 300)


def spiked(*at: int, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    curve = calm(seed)
    curve[list(at)] += 4
    return curve


@pytest.mark.parametrize("seed", SEEDS)
def test_loss_spike_single_is_seen(seed: int) -> None:
    assert state("loss_spike_single", run_of(loss=spiked(150, seed=seed))) is State.PRESENT


@pytest.mark.parametrize("seed", SEEDS)
def test_loss_spike_single_is_absent_where_the_loss_jumps_otherwise(seed: int) -> None:
    assert state("loss_spike_single", run_of(loss=spiked(80, 150, 230, seed=seed))) is State.ABSENT


@pytest.mark.parametrize("seed", SEEDS)
def test_loss_spike_single_is_not_judged_where_the_loss_does_not_jump(seed: int) -> None:
    assert state("loss_spike_single", run_of(loss=calm(seed))) is State.UNKNOWN


def test_of_a_log_density_a_jump_to_where_it_once_was_cannot_be_told() -> None:
    loss = noisy(decay(300, 5.0, -9.0), 0.02)
    loss[200] += 4
    assert state("loss_spike", run_of(loss=loss)) is State.PRESENT
    assert state("loss_spike_single", run_of(loss=loss)) is State.UNKNOWN
