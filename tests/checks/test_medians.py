"""Medians of many short windows are worked out faster than numpy does, and are the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.checks.curve import row_medians
from mldebug_mcp.checks.run import loss_events
from mldebug_mcp.checks.run.loss_events import level_around
from mldebug_mcp.core.arrays import median


@pytest.mark.parametrize("count", [1, 2, 3, 8, 1001])
def test_a_median_is_that_of_numpy(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count).round(1)
    assert median(values) == np.median(values)
    assert median(np.arange(count)) == np.median(np.arange(count))
    assert np.isnan(median(np.append(values, np.nan)))
    assert np.isnan(median(np.empty(0)))


@pytest.mark.parametrize("width", [1, 2, 6, 7, 50])
def test_rows_have_the_medians_of_numpy(width: int) -> None:
    random = np.random.default_rng(width)
    rows = random.normal(size=(300, width)).round(1)
    rows[7, 0] = np.nan
    np.testing.assert_array_equal(row_medians(rows), np.median(rows, axis=1))


@pytest.mark.parametrize("count", [24, 100, 1001])
def test_the_level_around_a_record_is_the_median_of_three_on_each_side(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss_events, "_BATCH", 100)
    curve = np.random.default_rng(count).normal(size=count).round(1)
    mirrored = np.pad(curve, 3, mode="reflect")
    around = [np.delete(mirrored[at : at + 7], 3) for at in range(count)]
    np.testing.assert_array_equal(level_around(curve), np.median(around, axis=1))
