"""Medians of many short windows are worked out faster than numpy does, and are the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.checks.curve import row_medians
from mldebug_mcp.checks.run.loss_events import level_around
from mldebug_mcp.core.arrays import has_distinct, median, median_gap


@pytest.mark.parametrize("count", [1, 2, 3, 8, 1001])
def test_a_median_is_that_of_numpy(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count).round(1)
    assert median(values) == np.median(values)
    assert median(np.arange(count)) == np.median(np.arange(count))
    assert np.isnan(median(np.append(values, np.nan)))
    assert np.isnan(median(np.empty(0)))


@pytest.mark.parametrize("steps", [[1, 2, 3], [1, 2, 4, 9], [5, 4, 4], [0, np.inf, np.inf, 1], [1]])
def test_a_median_gap_is_the_median_of_the_differences(steps: list[float]) -> None:
    values = np.array(steps, dtype=float)
    with np.errstate(invalid="ignore"):
        np.testing.assert_equal(median_gap(values), median(np.diff(values)))


def test_a_value_that_stands_once_in_a_long_curve_is_distinct() -> None:
    curve = np.zeros(100_000)
    curve[77_777] = 1
    assert has_distinct(curve, 2)
    assert not has_distinct(curve, 3)


@pytest.mark.parametrize("width", [1, 2, 6, 7, 50])
def test_rows_have_the_medians_of_numpy(width: int) -> None:
    random = np.random.default_rng(width)
    rows = random.normal(size=(300, width)).round(1)
    rows[7, 0] = np.nan
    np.testing.assert_array_equal(row_medians(rows), np.median(rows, axis=1))


@pytest.mark.parametrize("count", [24, 100, 1001])
def test_the_level_around_a_record_is_the_median_of_three_on_each_side(count: int) -> None:
    curve = np.random.default_rng(count).normal(size=count).round(1)
    mirrored = np.pad(curve, 3, mode="reflect")
    around = [np.delete(mirrored[at : at + 7], 3) for at in range(count)]
    parts = [level_around(curve, first, min(first + 100, count)) for first in range(0, count, 100)]
    np.testing.assert_array_equal(np.concatenate(parts), np.median(around, axis=1))
