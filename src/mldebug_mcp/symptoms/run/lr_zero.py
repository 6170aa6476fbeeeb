"""Learning rate is zero while training goes on."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.rounding import ends_by_rounding
from mldebug_mcp.text import figure

LEAST_RECORDS = 3
LEAST_SHARE = 0.03
PRINTED_DIGITS = 5
"""Rates of so few decimals may have been rounded to zero: `lr 0.0000` is what "%.4f" makes of 2e-5."""
LEARNT = 0.1
"""A loss that falls by this share, or evaluations that differ by a fifth of it, are not those of a rate of zero."""
LEAST_LOSSES = 6


@symptom(needs=("learning_rate",), sources=("transformers_docs",), points=5, background=0.01)
def lr_zero(run: Run) -> Evidence | None:
    """The learning rate is zero over a stretch of records while training goes on.

    Not this when: a schedule ends at zero with the last record, or warmup begins at zero with the first; the rate is
    printed with so few digits that a small one reads 0, and the loss goes on falling. The length of the stretch and
    the bounds were chosen by hand.
    """
    rate = run["learning_rate"].finite
    zero = np.abs(rate.value) <= 1e-12 * max(float(np.abs(rate.value).max()), 1e-12)
    if not zero.any():
        return None
    needed = max(LEAST_RECORDS, LEAST_SHARE * len(zero))
    edges = np.flatnonzero(np.diff(np.concatenate([[0], zero.astype(np.int8), [0]])))
    starts, ends = edges[::2], edges[1::2]
    long = np.flatnonzero(ends - starts >= needed)
    if not len(long):
        return None
    first, last = int(starts[long[0]]), int(ends[long[0]]) - 1
    if _few_digits(rate.value) and _learns(run, float(rate.step[first]), float(rate.step[last])):
        raise CannotTell("the learning rate is printed as 0 while the loss is learnt: it has too few digits")
    if last == len(zero) - 1 and ends_by_rounding(rate.value, (last - first + 1) / len(zero)):
        raise CannotTell("the learning rate is printed with so few decimals that the end of a schedule reads 0")
    return Evidence(
        f"learning_rate is 0 from {run.step_name} {figure(float(rate.step[first]))} to "
        f"{figure(float(rate.step[last]))} ({last - first + 1} records)",
        steps=(float(rate.step[first]),),
        values={"records": last - first + 1, "share": float(zero.mean())},
    )


def _few_digits(rates: Floats) -> bool:
    scaled = rates * 10.0**PRINTED_DIGITS
    return bool(np.all(np.abs(scaled - np.round(scaled)) < 1e-6))


def _learns(run: Run, start: float, end: float) -> bool:
    """Say whether the losses change between two steps as they cannot without updates."""
    for name in ("eval_loss", "loss"):
        if name not in run.series:
            continue
        series = run[name].finite
        values = series.value[(series.step >= start) & (series.step <= end)]
        if name == "eval_loss" and len(values) >= 2 and np.ptp(values) > LEARNT / 5 * abs(float(values[0])):
            return True
        third = len(values) // 3
        if len(values) >= LEAST_LOSSES and median(values[-third:]) < (1 - LEARNT) * median(values[:third]):
            return True
    return False
