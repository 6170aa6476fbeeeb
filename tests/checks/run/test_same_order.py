from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state


def batches(count: int, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return how hard each batch of a pass is."""
    return np.asarray(np.exp(0.05 * np.random.default_rng(seed).standard_normal(count)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("per_pass", [13, 50, 150])
def test_batches_in_the_same_order_each_pass_come_again_at_the_distance_of_a_pass(per_pass: int, seed: int) -> None:
    order = np.resize(batches(per_pass, seed), 400)
    finding = seen("batches_recur", run_of(loss=noisy(decay(400) * order, 0.01, seed), every=5))
    assert finding.state is State.PRESENT
    assert finding.values["distance"] % (5 * per_pass) == 0


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("tails", ["normal", "t3"])
def test_batches_that_are_drawn_anew_do_not(tails: str, seed: int) -> None:
    assert state("batches_recur", run_of(loss=noisy(decay(400), 0.1, seed, tails))) is State.ABSENT


@pytest.mark.parametrize("seed", range(10))
def test_a_spike_at_each_tenth_record_is_none(seed: int) -> None:
    loss = noisy(decay(400), 0.02, seed)
    loss[::10] *= 1.5
    assert state("batches_recur", run_of(loss=loss)) is State.ABSENT


@pytest.mark.parametrize("seed", range(10))
def test_a_smooth_wave_is_none(seed: int) -> None:
    wave = 1 + 0.1 * np.sin(np.arange(400) / 20)
    assert state("batches_recur", run_of(loss=noisy(decay(400) * wave, 0.03, seed))) is State.ABSENT


def test_rows_that_a_resume_feeds_again_come_again() -> None:
    fed = batches(300)
    loss = noisy(decay(400) * np.concatenate([fed[:200], fed[:200]]), 0.005)
    finding = seen("batches_recur", run_of(loss=loss))
    assert finding.state is State.PRESENT
    assert finding.values["distance"] == 200


@pytest.mark.parametrize("digits", [1, 2, 3])
def test_rounding_does_not(digits: int) -> None:
    assert state("batches_recur", run_of(loss=np.round(noisy(decay(400), 0.02), digits))) is State.ABSENT


def test_a_curve_without_noise_does_not() -> None:
    assert state("batches_recur", run_of(loss=decay(400))) is State.ABSENT


def test_rows_far_harder_than_all_others_in_each_pass_stand_out() -> None:
    order = np.resize(np.where(np.arange(50) == 20, 2.0, batches(50)), 400)
    assert state("few_batches_stand_out", run_of(loss=noisy(decay(400) * order, 0.01))) is State.PRESENT


def test_batches_that_differ_by_chance_do_not() -> None:
    order = np.resize(batches(50), 400)
    assert state("few_batches_stand_out", run_of(loss=noisy(decay(400) * order, 0.01))) is State.ABSENT


def test_records_that_lie_on_two_curves_in_turn_show_no_order_of_the_data() -> None:
    two = noisy(decay(100, 2.0, 1.2), 0.01)
    two[1::2] = noisy(decay(50, 0.8, 0.5), 0.01)
    run = run_of(loss=two, every=10)
    assert {state(name, run) for name in ("batches_recur", "loss_periodic", "loss_noisy")} == {State.UNKNOWN}
    of_batches = run_of(loss=noisy(decay(100) * np.resize([1.0, 1.4, 0.7, 1.2], 100), 0.01))
    assert state("loss_periodic", of_batches) is State.PRESENT
