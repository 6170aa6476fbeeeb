from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state

NAME = "loss_rises_in_warmup"
RATE = np.minimum(np.arange(1, 101) / 40, 1) * 1e-4


def curve(low: int, high: float) -> Floats:
    """A loss that falls to 0.2 at record `low`, stands at `high` at the end of warmup (record 40) and falls again."""
    return np.interp(np.arange(1, 101), [1, low, 40, 100], [1.0, 0.2, high, 0.3 * high])


@pytest.mark.parametrize("seed", range(5))
def test_a_loss_that_climbs_with_the_rate_is_present(seed: int) -> None:
    finding = seen(NAME, run_of(loss=noisy(curve(10, 0.6), 0.02, seed), learning_rate=RATE))
    assert finding.values["rate_at_end"] > 3 * finding.values["rate_at_lowest"]
    assert 8 <= finding.steps[0] <= 14


@pytest.mark.parametrize("seed", range(5))
def test_a_loss_that_falls_all_through_warmup_is_absent(seed: int) -> None:
    assert state(NAME, run_of(loss=noisy(decay(100, 2.0, 0.4, 20), 0.1, seed), learning_rate=RATE)) is State.ABSENT


@pytest.mark.parametrize("seed", range(5))
def test_a_climb_within_the_noise_is_absent(seed: int) -> None:
    assert state(NAME, run_of(loss=noisy(curve(10, 0.3), 0.15, seed), learning_rate=RATE)) is State.ABSENT


def test_a_climb_after_warmup_is_another_symptom() -> None:
    loss = np.interp(np.arange(1, 101), [1, 40, 70, 100], [1.0, 0.2, 0.9, 0.9])
    assert state(NAME, run_of(loss=loss, learning_rate=RATE)) is State.ABSENT


@pytest.mark.parametrize("rate", [np.full(100, 1e-4), np.minimum(np.arange(1, 101) / 4, 1) * 1e-4])
def test_without_a_warmup_that_is_seen_it_cannot_be_told(rate: Floats) -> None:
    assert state(NAME, run_of(loss=curve(10, 0.6), learning_rate=rate)) is State.UNKNOWN
