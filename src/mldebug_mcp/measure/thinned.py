"""Fewer points of a curve that look the same: its extremes survive."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Floats, Series


def thinned(series: Series, stretches: int) -> Series:
    """Return the first, lowest, highest and last point of each of so many stretches of steps.

    A line through them looks like one through all points (M4 of Jugel et al., 2014, doi.org/10.14778/2732951.2732953).
    The first value of a stretch that is not finite stays, too.
    """
    if len(series) <= 4 * stretches:
        return series
    keep = _of_stretches(series.step, series.value, stretches)
    return Series(series.name, series.step[keep], series.value[keep], series.logged_as)


def _of_stretches(step: Floats, value: Floats, stretches: int) -> NDArray[np.int64]:
    edges = np.searchsorted(step, np.linspace(step[0], step[-1], stretches + 1)[:-1])
    starts = np.unique(edges)
    ends = np.append(starts[1:], len(step))
    finite = np.isfinite(value)
    low, high = np.where(finite, value, np.inf), np.where(finite, value, -np.inf)
    kept: set[int] = set()
    for first, end in zip(starts.tolist(), ends.tolist(), strict=True):
        kept |= {first, first + int(np.argmin(low[first:end])), first + int(np.argmax(high[first:end])), end - 1}
        kept.add(first + int(np.argmin(finite[first:end])))
    return np.array(sorted(kept), dtype=np.int64)
