from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("period", [5, 17, 40, 90])
@pytest.mark.parametrize("form", ["sine", "sawtooth", "bump"])
def test_a_pattern_that_comes_again_is_present_with_its_period(form: str, period: int, seed: int) -> None:
    phase = np.arange(600) % period / period
    wave = {"sine": np.sin(2 * np.pi * phase), "sawtooth": 2 * phase - 1, "bump": 2.0 * (phase < 0.25)}[form]
    finding = seen("loss_periodic", run_of(loss=noisy(decay(600) * (1 + 0.1 * wave), 0.06, seed), every=10))
    assert finding.state is State.PRESENT
    assert finding.values["period"] == pytest.approx(10 * period, rel=0.05, abs=10)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("tails", ["normal", "t3"])
def test_noise_has_no_period(tails: str, seed: int) -> None:
    assert state("loss_periodic", run_of(loss=noisy(decay(400), 0.1, seed, tails))) is State.ABSENT


@pytest.mark.parametrize("seed", range(8))
def test_noise_with_a_memory_has_no_period(seed: int) -> None:
    noise = np.convolve(np.random.default_rng(seed).standard_normal(520), np.ones(21) / 21, "valid")
    assert state("loss_periodic", run_of(loss=2 + 0.2 * noise)) is State.ABSENT


def test_one_spike_has_no_period() -> None:
    loss = noisy(decay(300), 0.01)
    loss[150] = 20
    assert state("loss_periodic", run_of(loss=loss)) is State.ABSENT


def test_unevenly_spaced_records_cannot_tell() -> None:
    steps = np.cumsum(np.random.default_rng(0).integers(1, 40, 100))
    assert state("loss_periodic", run_of(loss={float(step): 1.0 + step % 7 for step in steps})) is State.UNKNOWN


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [0.02, 0.06])
@pytest.mark.parametrize("fall", [0.85, 0.93])
def test_a_staircase_that_is_level_in_between_has_no_period(fall: float, size: float, seed: int) -> None:
    stairs = 2.0 * fall ** (np.arange(700) // 100)
    assert state("loss_periodic", run_of(loss=noisy(stairs, size, seed))) is State.ABSENT


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tilt", [-0.03, 0.03])
def test_a_staircase_whose_treads_tilt_a_little_has_no_period(tilt: float, seed: int) -> None:
    stairs = 2.0 * 0.85 ** (np.arange(700) // 100) * (1 + tilt * (np.arange(700) % 100) / 100)
    assert state("loss_periodic", run_of(loss=noisy(stairs, 0.02, seed))) is State.ABSENT


@pytest.mark.parametrize("seed", range(4))
def test_sorted_data_is_a_pattern_though_the_loss_falls_at_each_boundary(seed: int) -> None:
    phase = np.arange(700) % 100 / 100
    loss = noisy(decay(700, 3.0, 2.0) * (0.8 + 0.4 * phase), 0.05, seed)
    assert state("loss_periodic", run_of(loss=loss)) is State.PRESENT


@pytest.mark.parametrize("digits", [3, 4, 6])
def test_a_smooth_curve_that_is_rounded_has_no_period(digits: int) -> None:
    loss = 4 * (np.arange(20_000) + 1.0) ** -0.3
    assert state("loss_periodic", run_of(loss=np.round(loss, digits))) is State.ABSENT


def saw(length: int, teeth: int, seed: int = 0) -> NDArray[np.float64]:
    falls = np.tile(np.linspace(1.6, 1.2, length), teeth)
    return noisy(falls, 0.01, seed)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("length", "teeth"), [(12, 6), (25, 4), (30, 4)])
def test_blocks_of_rows_that_are_learnt_one_after_the_other_make_a_saw(length: int, teeth: int, seed: int) -> None:
    run = run_of(loss=saw(length, teeth, seed))
    assert state("loss_sawtooth", run) is State.PRESENT
    assert state("loss_spike", run) is State.UNKNOWN


@pytest.mark.parametrize("seed", range(10))
def test_noise_and_single_spikes_make_none(seed: int) -> None:
    loss = noisy(decay(120), 0.1, seed)
    assert state("loss_sawtooth", run_of(loss=loss)) is not State.PRESENT
    loss[[30, 60, 90]] *= 2
    assert state("loss_sawtooth", run_of(loss=loss)) is not State.PRESENT


@pytest.mark.parametrize("seed", range(5))
def test_one_change_of_the_data_makes_none(seed: int) -> None:
    assert state("loss_sawtooth", run_of(loss=saw(40, 2, seed))) is not State.PRESENT
