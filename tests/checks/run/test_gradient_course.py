from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("curve", [np.geomspace(1, 12, 300), np.concatenate([np.ones(150), np.geomspace(1, 40, 150)])])
def test_a_norm_that_grows_many_times_is_present(
    curve: np.ndarray[tuple[int], np.dtype[np.float64]], seed: int
) -> None:
    finding = seen("grad_norm_growing", run_of(grad_norm=noisy(curve, 0.3, seed, "lognormal")))
    assert finding.state is State.PRESENT
    assert finding.values["factor"] > 4


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("end", [0.2, 1.0, 2.5])
def test_a_norm_that_falls_or_drifts_is_absent(end: float, seed: int) -> None:
    norm = noisy(np.geomspace(1, end, 300), 0.5, seed, "lognormal")
    assert state("grad_norm_growing", run_of(grad_norm=norm)) is State.ABSENT


def test_a_spike_is_no_growth() -> None:
    norm = np.ones(300)
    norm[280:290] = 100
    assert state("grad_norm_growing", run_of(grad_norm=norm)) is not State.PRESENT


def test_ten_records_cannot_tell() -> None:
    assert state("grad_norm_growing", run_of(grad_norm=np.geomspace(1, 100, 10))) is State.UNKNOWN


def test_growth_that_comes_with_the_rise_of_the_loss_says_no_more_than_the_loss() -> None:
    turned = np.concatenate([np.linspace(5, 2, 150), np.linspace(2, 9, 150)])
    norm = noisy(np.concatenate([np.ones(150), np.geomspace(1, 40, 150)]), 0.3, 0, "lognormal")
    assert state("grad_norm_growing", run_of(loss=turned, grad_norm=norm)) is State.UNKNOWN


def test_growth_before_the_loss_rises_is_present() -> None:
    turned = np.concatenate([np.linspace(5, 2, 250), np.linspace(2, 9, 50)])
    assert state("grad_norm_growing", run_of(loss=turned, grad_norm=np.geomspace(1, 40, 300))) is State.PRESENT


@pytest.mark.parametrize("seed", range(5))
def test_a_norm_of_thirty_times_its_level_is_present(seed: int) -> None:
    norm = noisy(np.ones(200), 0.3, seed, "lognormal")
    norm[120] = 30
    finding = seen("grad_norm_spike", run_of(grad_norm=norm))
    assert finding.state is State.PRESENT
    assert finding.steps[0] == 121


@pytest.mark.parametrize("seed", range(5))
def test_norms_that_always_vary_widely_are_absent(seed: int) -> None:
    assert state("grad_norm_spike", run_of(grad_norm=noisy(np.ones(300), 1.2, seed, "lognormal"))) is State.ABSENT


def test_a_few_norms_cannot_tell() -> None:
    assert state("grad_norm_spike", run_of(grad_norm=[1.0] * 5)) is State.UNKNOWN


def test_a_jump_that_stays_below_the_first_norms_of_a_policy_is_absent() -> None:
    norm = noisy(decay(200, 18.0, 0.07, 12), 0.1)
    norm[150] = 0.95
    assert state("grad_norm_spike", run_of(grad_norm=norm, kind="rl")) is State.ABSENT
    norm[150] = 60.0
    assert state("grad_norm_spike", run_of(grad_norm=norm, kind="rl")) is State.PRESENT
