"""Whether any answer of an evaluation is right, by scores of whole answers and by error rates."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.statistics import blocks, median

LEAST = 5
"""Evaluations. Chosen: a translator or recogniser that learns may need some until anything is right."""
SHARE, BEGINNING = 0.98, 0.2
"""An error rate from which on all answers are wrong, and the first share of the evaluations, in which it may be lower.
Chosen: that of empty answers, and that of random ones at first."""
PER_CENT = 5.0
"""Above this an error rate is in per cent. Chosen: insertions alone make one of five hundred per cent."""
STANDS = 0.05
"""Of the loss: a training loss that moves by no more over the later three quarters stands. Chosen: by hand."""
FALLS = 0.5
"""... and one that ends at this share of what it was at the first evaluation has fallen far. Chosen by hand."""
GAINS = 0.02
"""A share of wrong answers that falls by so much of itself still gets better. Chosen: by hand."""
OF_THE_MEAN, FAR_WORSE = 0.02, -1.0
"""R² of answers that tell nothing, at most and at least. Chosen: held-out targets have a mean of their own, and answers
with twice the variance of the targets are no one answer."""
_SCORES = (Quantity.BLEU, Quantity.CHRF)


def is_error_rate(series: Series) -> bool:
    """Say whether a metric is the rate of wrong characters, words, phones or units, which is best at zero."""
    return series.role is not None and series.role.quantity is Quantity.WORD_ERROR_RATE


def is_written_score(series: Series) -> bool:
    """Say whether a metric scores answers as they are written, which is zero where none is right."""
    return series.role is not None and series.role.quantity in _SCORES


def nothing_right(run: Run) -> Series | None:
    """Return a score of whole answers that is zero throughout, or an error rate that stands at 100 %, or None."""
    for name in run.series:
        one = run[name].finite
        if len(one) < LEAST:
            continue
        if is_written_score(one) and not one.value.any():
            return one
        if is_error_rate(one) and _all_wrong(one):
            return one
    return None


def no_better_than_the_mean(run: Run) -> Series | None:
    """Return the R² of evaluations that is about that of one answer for all, the mean of the targets; or None."""
    for one in run.with_role(Quantity.R2, phase="eval"):
        value = one.finite.value
        if len(value) >= LEAST and float(value.max()) <= OF_THE_MEAN and median(value) > FAR_WORSE:
            return one.finite
    return None


def worst_written(run: Run) -> Series | None:
    """Return the lowest score of written answers as a share that is wrong, 1 for all, or None if none is logged."""
    written = [
        (one.finite, is_error_rate(one)) for one in run.series.values() if is_error_rate(one) or is_written_score(one)
    ]
    shares = [Series(one.name, one.step, _wrong(one.value, rate)) for one, rate in written if len(one) >= LEAST]
    return max(shares, key=lambda one: median(one.value[-LEAST:]), default=None)


def still_gains(wrong: Series, since: float) -> bool:
    """Say whether less than half is wrong (`worst_written`) at the end, and clearly less than at a step."""
    before, end = wrong.at(since), float(wrong.value[-2:].max())
    return before is not None and end < min(0.5, (1 - GAINS) * before)


def _wrong(values: Floats, rate: bool) -> Floats:
    if rate:
        return values / 100 if float(values.max()) > PER_CENT else values
    return 1 - (values / 100 if float(values.max()) > 1 else values)


def _all_wrong(rate: Series) -> bool:
    later = rate.value[round(BEGINNING * len(rate)) :]
    if float(later.max()) > PER_CENT:
        return float(later.min()) >= 100 * SHARE
    # One per cent throughout is that of a model which knows all: a share of one is what comes again and again.
    return float(later.min()) >= SHARE and abs(median(later) - 1) < 1 - SHARE


def has_settled(loss: Series) -> bool:
    """Say whether a training loss hardly moves after the first quarter of its records."""
    level = blocks(loss.value[len(loss) // 4 :], 10).level
    return float(np.ptp(level)) <= STANDS * abs(float(level[-1]))


def has_fallen_far(loss: Series, since: float) -> bool:
    """Say whether a training loss has fallen by half and more since a step."""
    before = loss.between(0, since).value
    return len(before) > 0 and 0 <= float(loss.value[-3:].mean()) <= FALLS * float(before[-1])
