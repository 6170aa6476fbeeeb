"""How many rows are behind a share: shares of n rows are multiples of 1 / n."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Floats

MOST_ROWS = 2000
"""Rows up to which a number of them is tried. Chosen: by hand."""
CHANCE = 1e-3
"""How likely numbers drawn at random may be multiples of some 1 / n that small, for n to be believed. Chosen: by
hand."""
LEAST_DECIMALS, MOST_DECIMALS = 2, 6
"""Digits that shares are printed with. Chosen: single precision has no more that can be relied on."""


def rows_behind(shares: Floats) -> int | None:
    """Return the least number of rows of which all these can be shares, None if chance could do the same.

    Random numbers printed to d decimals fall within half a unit of a multiple of 1 / n with probability n / 10^d each;
    so all of m different ones do for some number of rows up to n with at most n times that to the power of m.
    Chance alone therefore decides how many rows so many digits can tell.
    """
    finite = np.unique(shares[np.isfinite(shares)])
    told = finite[(finite > 0) & (finite < 1)]
    if not len(told):
        return None
    off = 10.0 ** -_decimals(told)
    for rows in range(2, MOST_ROWS + 1):
        if rows * min(1.0, rows * off) ** len(told) > CHANCE:
            return None
        right = told * rows
        if float(np.abs(right - np.round(right)).max()) <= 0.5001 * off * rows:
            return rows
    return None


def sampling_error(share: float, rows: float) -> float:
    """Return the standard error of a share of so many rows, that of a binomial: sqrt(p (1 - p) / n)."""
    kept = min(max(share, 0.0), 1.0)
    return math.sqrt(max(kept * (1 - kept), 0.5 / rows * (1 - 0.5 / rows)) / rows)


def _decimals(shares: Floats) -> int:
    for decimals in range(LEAST_DECIMALS, MOST_DECIMALS):
        if bool(np.all(np.abs(shares - np.round(shares, decimals)) < 1e-9)):
            return decimals
    return MOST_DECIMALS
