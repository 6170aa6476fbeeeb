from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state


def hump(height: float, start: float = 4.5) -> np.ndarray:
    steps = np.arange(300)
    return decay(300, start, 3.0) + height * np.exp(-(((steps - 80) / 25) ** 2))


@pytest.mark.parametrize("height", [5, 50, 400])
def test_a_climb_far_above_the_start_that_comes_back_is_present_from_where_it_begins(height: float) -> None:
    finding = seen("loss_hump", run_of(loss=noisy(hump(height), 0.02)))
    assert finding.state is State.PRESENT
    assert 20 <= finding.steps[0] <= 80
    assert finding.values["factor"] > 1.4


def test_a_climb_that_stays_up_is_absent() -> None:
    assert (
        state("loss_hump", run_of(loss=noisy(np.concatenate([decay(150), np.full(150, 20.0)]), 0.02))) is State.ABSENT
    )


def test_a_rise_to_the_level_at_the_start_is_absent() -> None:
    assert state("loss_hump", run_of(loss=noisy(hump(1.2), 0.02))) is State.ABSENT


@pytest.mark.parametrize("tails", ["normal", "lognormal", "t3"])
def test_noise_and_single_outliers_are_absent(tails: str) -> None:
    loss = noisy(decay(300), 0.2, 1, tails)
    loss[100] = 90.0
    assert state("loss_hump", run_of(loss=loss)) is State.ABSENT


def test_of_a_handful_of_records_and_of_a_policy_it_cannot_be_told() -> None:
    assert state("loss_hump", run_of(loss=[4.0, 9.0, 9.0, 3.0])) is State.UNKNOWN
    assert state("loss_hump", run_of(loss=hump(50), kind="ppo")) is State.UNKNOWN


@pytest.mark.parametrize("seed", range(6))
def test_wide_noise_from_the_first_record_on_is_no_hump(seed: int) -> None:
    """As in tuning a diffusion model, where each record is one batch at other noise levels."""
    loss = np.clip(np.exp(-2.3 + 0.8 * np.random.default_rng(seed).standard_normal(500)), 0, 1)
    assert state("loss_hump", run_of(loss=loss)) is State.ABSENT
