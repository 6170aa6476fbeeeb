"""Where a curve leaves its course: drifts, levels and bends."""

from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.checks.curve import departure, drift, highest_level, monotone
from tests.runs import noisy


@pytest.mark.parametrize("at", [60, 150, 240])
@pytest.mark.parametrize("before", [0.0, 0.01])
def test_a_curve_departs_where_its_slope_changes(at: int, before: float) -> None:
    position = np.arange(300)
    curve = 10 + before * position + 0.2 * np.maximum(0, position - at)
    assert departure(noisy(curve, 0.01), float(curve[-1])) == pytest.approx(at, abs=12)


def test_a_jump_departs_where_it_jumps_whichever_way() -> None:
    curve = np.concatenate([np.full(100, 1.0), np.full(100, 5.0)])
    assert departure(curve, 5.0) == 100
    assert departure(-curve, -5.0) == 100


def test_a_drift_is_told_with_the_error_that_its_noise_gives() -> None:
    seeds = range(40)
    changes, errors = zip(*(drift(1 + noisy([0.1] * 200, 1.0, seed)) for seed in seeds), strict=True)
    assert np.std(changes) == pytest.approx(float(np.mean(errors)), rel=0.4)
    assert drift(np.linspace(0, 3, 50))[0] == pytest.approx(3)


def test_a_single_point_makes_no_level() -> None:
    curve = np.ones(100)
    curve[50] = 1000
    assert highest_level(curve)[0] == 1.0


def test_rank_correlation_is_one_for_a_rise_and_minus_one_for_a_fall() -> None:
    assert monotone(np.array([1.0, 2.0, 4.0, 9.0])) == pytest.approx(1)
    assert monotone(np.array([9.0, 4.0, 2.0, 1.0])) == pytest.approx(-1)


@pytest.mark.parametrize("value", [0.1, 0.39, 0.7, 3.3, 1e-5])
@pytest.mark.parametrize("count", [11, 40, 1000])
def test_a_curve_that_keeps_one_value_does_not_drift_by_rounding(value: float, count: int) -> None:
    assert drift(np.full(count, value))[0] == 0
