"""A million points: statistics are taken from an even sample of them, and say the same."""

from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.checks.course import events_of
from mldebug_mcp.checks.curve import MAX_SAMPLE, MAX_WINDOWS, blocks, drift, mad, median_of_three, noise, sample
from mldebug_mcp.checks.run.loss_events import find_spikes
from mldebug_mcp.checks.run.resume import falls_of
from mldebug_mcp.core.arrays import VALUES_TOGETHER, are_whole, grouped
from mldebug_mcp.logs import Run, Series

COUNT = 1_000_000
NORMAL = np.random.default_rng(0).normal(size=COUNT)


def test_a_short_curve_is_its_own_sample() -> None:
    curve = np.arange(float(MAX_SAMPLE))
    assert sample(curve) is curve


def test_a_sample_is_spread_over_the_whole_curve() -> None:
    some = sample(np.arange(float(COUNT)))
    assert MAX_SAMPLE / 2 <= len(some) <= MAX_SAMPLE
    assert some[0] == 0
    assert some[-1] >= COUNT - COUNT / len(some)


def test_the_spread_and_noise_of_a_long_curve_are_told_to_a_percent_or_two() -> None:
    curve = 5 + 0.3 * NORMAL
    assert mad(curve) == pytest.approx(0.3, rel=0.02)
    assert noise(curve) == pytest.approx(0.3, rel=0.02)


def test_the_levels_of_a_long_curve_differ_from_the_full_medians_by_no_more_than_their_wobble_says() -> None:
    curve = np.linspace(10, 2, COUNT) + NORMAL
    cut = blocks(curve, 20)
    full = np.median(curve.reshape(20, -1), axis=1)
    assert np.abs(cut.level - full).max() < 4 * cut.wobble < 0.15


def test_the_drift_of_a_long_line_is_its_rise() -> None:
    assert drift(np.linspace(1, 4, COUNT))[0] == pytest.approx(3)


def test_a_median_of_three_is_the_middle_of_each_point_and_its_neighbours() -> None:
    curve = np.array([3.0, 1.0, 2.0, 9.0, 2.5])
    assert median_of_three(curve).tolist() == [3.0, 2.0, 2.0, 2.5, 2.5]
    assert np.isnan(median_of_three(np.array([1.0, np.nan, 2.0]))).all()


def test_a_jump_in_a_long_curve_is_found_wherever_it_stands_among_the_windows() -> None:
    stretch = 10
    quiet = 3 + 0.05 * NORMAL[: stretch * MAX_WINDOWS]
    assert find_spikes(quiet) == []
    for at in range(stretch * 1000, stretch * 1001 + 1):
        curve = quiet.copy()
        curve[at : at + 2] = 6
        (found,) = find_spikes(curve)
        assert (found.first, found.last) in ((at, at + 1), (at, at + 2))


def test_a_long_move_of_a_long_curve_ends_where_it_comes_back() -> None:
    curve = 5 + 0.02 * NORMAL
    curve[300_000:450_000] += 4
    run = Run("", (), {"loss": Series("loss", np.arange(float(COUNT)), curve)})
    (event,) = events_of(run, ["loss"])
    assert (event.step, event.changes[0].back) == (300_000, 450_000)


@pytest.mark.parametrize("at", [2, VALUES_TOGETHER - 1, VALUES_TOGETHER, VALUES_TOGETHER + 1, 3 * VALUES_TOGETHER - 2])
def test_a_rate_that_moves_at_once_is_an_event_at_the_record_where_it_does(at: int) -> None:
    rate = np.full(3 * VALUES_TOGETHER, 1e-3)
    rate[at:] /= 10
    run = Run("", (), {"learning_rate": Series("learning_rate", np.arange(float(len(rate))), rate)})
    assert [event.step for event in events_of(run, ["learning_rate"])] == [at]


def test_a_stretch_of_a_curve_is_not_copied() -> None:
    curve = Series("loss", np.arange(float(COUNT)), NORMAL)
    part = curve.between(10, 500_000)
    assert len(part) == 499_991
    assert np.shares_memory(part.value, curve.value)


def test_where_a_loss_of_a_million_records_falls_back_is_told_to_the_record() -> None:
    place, share = 400_000, np.arange(COUNT) / COUNT
    curve = 1.5 + 2 * np.exp(-6 * share) + 0.15 * NORMAL
    curve[place:] -= 0.7 * np.exp(-(share[place:] - share[place]) / 0.15)
    step = np.arange(float(COUNT))
    run = Run("", (), {"loss": Series("loss", step, curve)})
    (found,) = falls_of(run)
    assert found.step == pytest.approx(place, abs=2)


def test_records_are_grouped_by_pass_in_the_order_in_which_they_came() -> None:
    values, passes = np.arange(6.0), np.array([1, 0, 1, 0, 2, 1])
    assert [group.tolist() for group in grouped(values, passes)] == [[1.0, 3.0], [0.0, 2.0, 5.0], [4.0]]
    assert [group.tolist() for group in grouped(values, np.sort(passes))] == [[0.0, 1.0], [2.0, 3.0, 4.0], [5.0]]
    assert grouped(values[:0], passes[:0]) == []


def test_a_value_holds_until_the_next_is_logged() -> None:
    epoch = Series("epoch", np.array([1.0, 2.0, 2.0, 4.0]), np.array([0.0, 1.0, 2.0, 3.0]))
    assert epoch.held(np.array([0.0, 1.5, 3.0, 9.0])).tolist() == [0.0, 0.0, 2.0, 3.0]
    assert epoch.held(epoch.step).tolist() == [0.0, 2.0, 2.0, 3.0]


def test_one_fraction_anywhere_is_seen_in_a_long_column() -> None:
    steps = np.arange(float(COUNT))
    assert are_whole(steps)
    for place in (0, COUNT // 2, COUNT - 1):
        assert not are_whole(np.where(steps == place, 0.5, steps))
