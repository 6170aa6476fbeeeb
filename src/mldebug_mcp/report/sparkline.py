"""A curve in one line of text."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mldebug_mcp.logs import Series
from mldebug_mcp.logs.run import Floats
from mldebug_mcp.measure.statistics import sample

_BARS = "▁▂▃▄▅▆▇█"
_NOT_FINITE = "×"
_SMALLER = 2.0**-8
"""What values are multiplied by, so that the distance between the largest ones of both signs is a number too."""


def sparkline(series: Series, width: int, onset: float | None = None) -> tuple[str, int | None]:
    """Return a curve as `width` bars at most, and the column in which the step `onset` lies.

    Each column shows the highest value of its steps, so that a spike of one record is seen; × marks NaN and Inf. The
    scale is cut at twice the range of the middle 95 % of the values, so that one outlier does not flatten the rest.
    """
    if not len(series):
        return "", None
    count = min(max(width, 1), len(series))
    edges = np.linspace(0, len(series), count + 1).astype(int)
    value = series.value * _SMALLER
    low, high = _scale(value[np.isfinite(value)])
    bars = [_bar(value[a:b], low, high) for a, b in pairwise(edges)]
    column = None
    if onset is not None:
        at = min(int(np.searchsorted(series.step, onset)), len(series) - 1)
        column = int(np.searchsorted(edges, at, side="right")) - 1
    return "".join(bars), column


def _scale(finite: Floats) -> tuple[float, float]:
    if not len(finite):
        return 0.0, 1.0
    low, high = (float(edge) for edge in np.quantile(sample(finite), (0.025, 0.975)))
    return float(finite.min()), min(float(finite.max()), high + 2 * (high - low)) if high > low else float(finite.max())


def _bar(values: Floats, low: float, high: float) -> str:
    if not np.isfinite(values).all():
        return _NOT_FINITE
    share = (float(values.max()) - low) / (high - low) if high > low else 0.0
    return _BARS[int(np.clip(share * len(_BARS), 0, len(_BARS) - 1))]
