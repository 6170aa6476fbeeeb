"""Scores of evaluation that do not move, or are zero where something must be right."""

from __future__ import annotations

import re

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.answers import is_error_rate
from mldebug_mcp.measure.quality import as_share, as_shares
from mldebug_mcp.measure.statistics import end_level

MORE = 5
"""Evaluations of a metric other than an accuracy. Chosen: by hand."""
SAME = 1e-6
"""Share of a loss that rounding leaves of one model. Chosen: float32 has seven digits."""
SATURATED, BY_HEART = 0.85, 0.999
"""An accuracy that is near its best, at evaluation and in training throughout. Chosen: by hand."""
MANY, MOSTLY, WITHIN, BEYOND = 10, 0.6, 0.005, 0.05
"""Of so many evaluations this share has one accuracy and none is further off, nor is training by more. Chosen: by
hand."""
MEASURES = ("eval_accuracy", "eval_acc", "eval_exact_match", "eval_em")
"""Shares of all answers that are right. The recall or F1 of a rare class may well be zero."""
FAR = 0.3
"""Of the first evaluation loss, to which it falls where no score of all there is can be zero. Chosen: by hand."""
_OF_A_CLASS = re.compile(r"\d|class|cat(?:egory)?|small|medium|large|rare|minority", re.IGNORECASE)


def is_one_number(series: Series) -> bool:
    """Say whether all values of a loss, or a score beside it, are those of one and the same model."""
    return float(np.ptp(series.value)) <= SAME * abs(float(series.value[0]))


def digits_of(value: float) -> int:
    """Return how many digits a number was logged with, without zeros at either end."""
    return len(f"{abs(value):.12g}".replace(".", "").lstrip("0"))


def does_not_move(run: Run, series: Series) -> bool:
    """Say whether a score keeps to one value, at which training has not been from the start."""
    return (stands_still(series) or _hardly_moves(run, series)) and not _by_heart(run, series)


def stands_still(series: Series) -> bool:
    """Say whether a score is one number throughout, and none that is near its best."""
    value = float(series.value[0])
    if not is_error_rate(series) and SATURATED <= as_share(value) <= 1:
        return False
    return bool(np.ptp(series.value) <= 1e-9 * max(abs(value), 1e-30)) or not series.value.any()


def _hardly_moves(run: Run, series: Series) -> bool:
    """Say whether an accuracy of evaluation keeps to one value, which that of training does not leave behind."""
    if series.name != MEASURES[0] or len(series) < MANY or "accuracy" not in run:
        return False
    share, trained = as_shares(series.value), as_shares(run["accuracy"].finite.value)
    value, times = most_often(Series(series.name, series.step, share))
    near = float(np.abs(share - value).max()) <= WITHIN and len(trained) > 0 and end_level(trained) <= value + BEYOND
    return near and times >= MOSTLY * len(share) and value < SATURATED


def most_often(series: Series) -> tuple[float, int]:
    """Return the value that comes most often, and how often that is."""
    values, counts = np.unique(series.value, return_counts=True)
    return float(values[int(np.argmax(counts))]), int(counts.max())


def _by_heart(run: Run, series: Series) -> bool:
    """Say whether training had the best of such a score from its first record: it is done, and changes nothing."""
    name = series.name.removeprefix("eval_")
    trained = run[name].finite.value if name in run and name != series.name else np.empty(0)
    return bool(len(trained)) and bool(series.value.any()) and as_share(float(trained.min())) >= BY_HEART


def beside_a_loss_that_falls(run: Run) -> list[Series]:
    """Return the scores of all there is, whatever they are called, where the evaluation loss has fallen far."""
    loss = run["eval_loss"].finite.value if "eval_loss" in run else np.empty(0)
    if len(loss) < MORE or not 0 < float(loss[-1]) < FAR * float(loss[0]):
        return []
    scores = run.with_role(*(one for one in Quantity if one.higher_is_better), parts=True)
    return [one.finite for one in scores if len(one.finite) >= MORE and not _OF_A_CLASS.search(one.name)]
