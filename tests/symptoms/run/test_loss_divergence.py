from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, run_of_records, seen, state


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("at", "lasting"), [(350, 5), (200, 150), (100, 20), (300, 90)])
def test_a_rise_that_stays_is_present_from_where_it_begins(at: int, lasting: int, seed: int) -> None:
    loss = decay(400)
    loss[at:] = loss[at] + 3 * np.minimum(np.arange(400 - at) / lasting, 1)
    finding = seen("loss_divergence", run_of(loss=noisy(loss, 0.02, seed)))
    assert finding.state is State.PRESENT
    assert abs(finding.steps[0] - at) <= 8 + lasting / 15


@pytest.mark.parametrize("loss", [[6.37, 6.6, 7.31, 9.12, 10.24], [3.32, 3.42, 3.68, 7.27, 4.13, 7.6, 7.02]])
def test_a_climb_at_the_end_of_an_excerpt_is_present(loss: list[float]) -> None:
    assert state("loss_divergence", run_of(loss=loss)) is State.PRESENT


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("tails", ["normal", "lognormal", "t3"])
def test_a_noisy_plateau_does_not_diverge(tails: str, seed: int) -> None:
    assert state("loss_divergence", run_of(loss=noisy(np.full(300, 1.3), 0.15, seed, tails))) is State.ABSENT


def test_a_spike_that_recovers_is_none() -> None:
    loss = decay(300)
    loss[150:180] *= 3
    assert state("loss_divergence", run_of(loss=loss)) is State.ABSENT


def test_a_noisy_excerpt_that_falls_is_none() -> None:
    assert state("loss_divergence", run_of(loss=[2.1, 1.9, 1.2, 1.9, 2.0])) is State.ABSENT


def test_four_records_cannot_tell() -> None:
    assert state("loss_divergence", run_of(loss=[1.0, 2.0, 3.0, 4.0])) is State.UNKNOWN


def test_a_loss_that_explodes_by_powers_rises_from_the_first_of_them_on() -> None:
    loss = [0.06, 0.11, 0.05, 5e19, 4e20, 2e21, 8e21, 3e22]
    assert seen("loss_divergence", run_of(loss=loss)).steps == [4]


def test_epoch_means_that_go_up_four_times_in_a_row_are_present() -> None:
    loss = [1.62, 1.25, 1.14, 1.12, 1.14, 1.16, 1.18, 1.21]
    finding = seen("loss_divergence", run_of_records([{"epoch": 1 + at, "loss": one} for at, one in enumerate(loss)]))
    assert finding.state is State.PRESENT
    assert finding.steps == [5]


def test_epoch_means_that_go_up_and_down_are_absent() -> None:
    loss = [1.62, 1.25, 1.14, 1.12, 1.15, 1.13, 1.14, 1.12]
    run = run_of_records([{"epoch": 1 + at, "loss": one} for at, one in enumerate(loss)])
    assert state("loss_divergence", run) is State.ABSENT


@pytest.mark.parametrize("lowest", [0.05, 0.5])
def test_a_short_curve_that_swings_back_record_by_record_is_present(lowest: float) -> None:
    loss = np.array([1.0, 0.85, 0.4, 0.15, 0.0, 0.05, 0.3, 0.55, 0.8, 0.9]) * (1.6 - lowest) + lowest
    finding = seen("loss_divergence", run_of(loss=loss))
    assert finding.state is State.PRESENT
    assert finding.steps == [6]


def test_a_short_curve_that_climbs_to_many_times_its_lowest_is_present() -> None:
    finding = seen("loss_divergence", run_of(loss=[15.5, 13.0, 3.8, 2.4, 1.4, 5.8, 7.1, 10.0]))
    assert finding.state is State.PRESENT
    assert finding.steps == [6]


@pytest.mark.parametrize(
    "loss",
    [
        [2.0, 1.1, 0.9, 0.6, 0.3, 0.31, 0.35, 0.38, 0.4, 0.45],
        [2.0, 0.4, 0.3, 0.9, 0.5, 1.1, 0.4, 0.9, 1.2, 1.0],
        [2.0, 0.2, 0.01, 0.002, 0.001, 0.003, 0.005, 0.008],
    ],
    ids=["a small part of what was won", "up and down", "many times nearly nothing"],
)
def test_a_short_curve_that_does_not_swing_back_is_absent(loss: list[float]) -> None:
    assert state("loss_divergence", run_of(loss=loss)) is State.ABSENT


def test_a_loss_that_rises_with_the_time_of_its_steps_cannot_tell() -> None:
    loss = [3.0, 3.4, 3.1, 4.5, 6.0, 7.5, 9.0, 8.6, 10.0, 11.5, 12.0, 13.5]
    longer = [0.2 + one / 20 for one in loss]
    assert state("loss_divergence", run_of(loss=loss, step_time=longer)) is State.UNKNOWN
    assert state("loss_divergence", run_of(loss=loss, step_time=[0.2] * 12)) is State.PRESENT
