from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state

NAME = "loss_spike_high"


@pytest.mark.parametrize("seed", range(5))
def test_a_jump_back_to_half_of_the_start_is_high(seed: int) -> None:
    loss = noisy(decay(300, 4.0, 1.0), 0.02, seed)
    loss[200] += 2
    finding = seen(NAME, run_of(loss=loss))
    assert finding.steps == [201]
    assert finding.values["share"] == pytest.approx(0.55, abs=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_a_small_jump_as_large_runs_have_is_not(seed: int) -> None:
    loss = noisy(decay(300, 11.0, 2.5), 0.02, seed)
    loss[200] += 0.8
    assert state("loss_spike", run_of(loss=loss)) is State.PRESENT
    assert state(NAME, run_of(loss=loss)) is State.ABSENT


def test_of_a_loss_that_does_not_jump_it_cannot_be_told() -> None:
    assert state(NAME, run_of(loss=noisy(decay(300, 4.0, 1.0), 0.02))) is State.UNKNOWN


def test_of_a_loss_below_zero_the_size_counts() -> None:
    loss = noisy(np.full(40, -5.0), 0.01)
    loss[25] = 4e4
    assert state("loss_spike_high", run_of(loss=loss)) is State.PRESENT


def test_of_a_log_density_a_jump_to_where_it_once_was_cannot_be_told() -> None:
    loss = noisy(decay(300, 5.0, -9.0), 0.02)
    loss[200] += 2.5
    assert state(NAME, run_of(loss=loss)) is State.UNKNOWN
