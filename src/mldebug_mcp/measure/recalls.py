"""What tells how well a classifier does by class: the recall of each, means over them, scores of the one looked for."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.shares import as_shares
from mldebug_mcp.measure.statistics import median

LEAST, LAST = 4, 3
"""Evaluations, and those that are the last. Chosen: a median of three has no outlier, and some come before it."""
_RECALL = re.compile(r"(?:eval_)?(?:.*[_/])?(?:recall(?:[_/].+)?|(?:f1|acc(?:uracy)?)[_/]class[_/]?\w+)")
_MEAN = re.compile(r"macro|balanced|mean|avg|average|weighted|micro|recall$|@|at_?\d")
_OVER_CLASSES = re.compile(r"eval_.*(?:macro|balanced).*")
_OF_THE_POSITIVE = ("eval_f1", "eval_recall", "eval_sensitivity", "eval_dice")
"""Of two classes these measure one, that which is looked for; of many, a mean over those that are no background."""


def recalls_of_classes(run: Run) -> list[Series]:
    """Return the recall of each class, or its accuracy or F1, where they are logged by class."""
    return _long(run, (name for name in run.series if _RECALL.fullmatch(name) and not _MEAN.search(name)))


def means_over_classes(run: Run) -> list[Series]:
    """Return the scores of evaluation in which each class counts as much as another."""
    return _long(run, (name for name in run.series if _OVER_CLASSES.fullmatch(name)))


def scores_of_the_positive(run: Run) -> list[Series]:
    """Return the scores that, of two classes, measure the one that is looked for."""
    return _long(run, (name for name in _OF_THE_POSITIVE if name in run))


def _long(run: Run, names: Iterable[str]) -> list[Series]:
    return [one for one in (run[name].finite for name in names) if len(one) >= LEAST]


def last_share(series: Series) -> float:
    """Return a score at the end as a share of one, 0 where it has no values."""
    return median(as_shares(series.value)[-LAST:]) if len(series) else 0.0
