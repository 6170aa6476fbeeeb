"""Classes that are hardly ever predicted while others nearly always are."""

from __future__ import annotations

import re

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.shares import as_share
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

LEAST = 4
"""Evaluations of each class, or of a mean over classes. Chosen: by hand."""
FOUND, MISSED = 0.9, 0.1
"""Recall of a class that always wins, and of one that is as good as never predicted. Chosen: by hand."""
SHARE = 0.3
"""Of the other classes: so many are missed. Chosen: by hand."""
APART = 0.35
"""How far a mean over classes lies below the accuracy where some are not learnt at all. Chosen: by hand."""
_RECALL = re.compile(r"(?:eval_)?(?:.*[_/])?(?:recall(?:[_/].+)?|(?:f1|acc(?:uracy)?)[_/]class[_/]?\w+)")
_MEAN = re.compile(r"macro|balanced|mean|avg|average|weighted|micro|recall$|@|at_?\d")
_OF_THE_POSITIVE = ("eval_f1", "eval_recall", "eval_sensitivity", "eval_dice")
"""Of two classes these measure one, that which is looked for; of many, a mean over those that are no background."""
RIGHT = 0.6
"""An accuracy that answers of the commonest class alone reach. Chosen: by hand."""
_OVER_CLASSES = re.compile(r"eval_.*(?:macro|balanced).*")


def minority_missed(run: Run) -> Evidence | None:
    """Some classes are hardly ever found at evaluation, to the end, while another nearly always is.

    Judged by the recall of each class, or by a mean over classes (macro F1, balanced accuracy) far below the accuracy,
    or by an F1 or a recall near zero beside an accuracy that is not.
    Not this when: all classes are found in the end, or all is right; the model finds none of them well. The numbers
    were chosen by hand.
    """
    recalls = [run[name].finite for name in run.series if _RECALL.fullmatch(name) and not _MEAN.search(name)]
    recalls = [one for one in recalls if len(one) >= LEAST]
    if len(recalls) >= 2:
        return None if _all_right(run) else _by_recall(recalls)
    means = [run[name].finite for name in run.series if _OVER_CLASSES.fullmatch(name)]
    means = [one for one in means if len(one) >= LEAST]
    found = next(
        (run[name].finite for name in _OF_THE_POSITIVE if name in run and len(run[name].finite) >= LEAST), None
    )
    if not means and found is not None and "eval_accuracy" in run:
        return _by_the_positive(found, run["eval_accuracy"].finite)
    if not means or "eval_accuracy" not in run:
        raise CannotTell("not logged: the recall of each class, or a mean over classes beside the accuracy")
    return _by_mean(means[0], run["eval_accuracy"].finite)


def _all_right(run: Run) -> bool:
    """Say whether no answer is wrong at the end: then the evaluation has no rows of a class whose recall is 0."""
    return "eval_accuracy" in run and len(right := run["eval_accuracy"].finite) > 0 and as_share(_last(right)) == 1


def _last(series: Series) -> float:
    return median(series.value[-3:])


def _by_recall(recalls: list[Series]) -> Evidence | None:
    last = {one.name: _last(one) for one in recalls}
    missed = [name for name, value in last.items() if value < MISSED]
    best = max(last, key=lambda name: last[name])
    if last[best] < FOUND or len(missed) < SHARE * (len(last) - 1):
        return None
    return Evidence(
        f"at the end {len(missed)} of {len(last)} classes have a recall below {MISSED:g} (such as {missed[0]}: "
        f"{figure(last[missed[0]])}), while {best} is {figure(last[best])}",
        steps=(float(recalls[0].step[0]),),
        values={"classes": len(last), "missed": len(missed), "best": last[best]},
    )


def _by_mean(mean: Series, accuracy: Series) -> Evidence | None:
    if not len(accuracy):
        raise CannotTell("no finite accuracy")
    scale = 100.0 if float(accuracy.value.max()) > 1.5 else 1.0
    here, there = _last(mean) / (100.0 if float(mean.value.max()) > 1.5 else 1.0), _last(accuracy) / scale
    if there < FOUND or there - here < APART:
        return None
    return Evidence(
        f"{mean.name} is {figure(here)} at the end while the accuracy is {figure(there)}",
        steps=(float(mean.step[0]),),
        values={"mean": here, "accuracy": there},
    )


def _by_the_positive(found: Series, accuracy: Series) -> Evidence | None:
    if not len(accuracy):
        raise CannotTell("no finite accuracy")
    scale = 100.0 if float(accuracy.value.max()) > 1.5 else 1.0
    later, right = found.value[len(found) // 2 :] / (100.0 if float(found.value.max()) > 1.5 else 1.0), _last(accuracy)
    if float(later.max()) > MISSED or right / scale < RIGHT:
        return None
    return Evidence(
        f"{found.name} is at most {figure(float(later.max()))} in the later half while the accuracy is "
        f"{figure(right / scale)}",
        steps=(float(found.step[0]),),
        values={"found": float(later.max()), "accuracy": right / scale},
    )
