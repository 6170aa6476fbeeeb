"""Terms of a loss: those that set in during a run, as planned, and those that outweigh what evaluation measures."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.evaluation import beside_training
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.measure.unknown import CannotTell

LEAST = 5
"""Records in a row at zero, from the first on, and then others mostly not. Chosen: terms are delayed by more."""
SHORTLY, SHORTLY_OF_RUN = 2, 0.02
"""Records, and share of them, by which a loss is seen to rise after a term set in. Chosen: it may grow."""
STRIDES, RAISED = 3, 1.2
"""Different strides that a plan takes at most, and times what it was that it raises. Chosen: rounding makes two of
one, and the last is cut short."""
NEAR_LOG = 0.4
"""Logarithms by which a term and the evaluation loss may differ, in the median, to be one. Chosen: dropout and rows
learnt by heart move it so far."""
_TERM = re.compile(r"loss|weight|factor|coef|penalty|(?:^|[/_.])(?:adv|disc|gan|kl|reg|beta|lambda)", re.IGNORECASE)
_NO_TERM = re.compile(r"^eval_|^(?:loss|learning_rate|weight_decay|loss_scale|grad_norm)$|scale|skip|weight_norm")


@dataclass(frozen=True, slots=True)
class SetsIn:
    """A term that is zero up to some step, and not from there on.

    Args:
        name: What it is called.
        last_zero: The last step at which it is zero.
        step: The first at which it is not.
    """

    name: str
    last_zero: float
    step: float


def terms_set_in(run: Run) -> list[SetsIn]:
    """Return the terms of the loss that set in: before and after, the loss is not the same quantity."""
    names = (name for name in run.series if _TERM.search(name) and not _NO_TERM.search(name))
    return [one for name in names if (one := _sets_in(run[name].finite)) is not None]


def refuse_new_terms(run: Run) -> None:
    """Raise CannotTell if a term of the loss sets in during the run: its levels before and after do not compare."""
    if terms := terms_set_in(run):
        one = terms[0]
        raise CannotTell(f"{one.name} sets in at {run.place(one.step)}: the loss is another one from there")


def term_set_in(run: Run, step: float) -> SetsIn | None:
    """Return the term that sets in where the loss begins to rise at a step, if one does: shortly before, or next to it.

    The loss is then another one from there on, and what it does there says nothing of the weights.
    """
    steps = run["loss"].finite.step
    at, near = int(np.searchsorted(steps, step)), max(SHORTLY, round(SHORTLY_OF_RUN * len(steps)))
    earliest, latest = float(steps[max(0, at - near)]), float(steps[min(len(steps) - 1, at + 1)])
    return next((one for one in terms_set_in(run) if one.last_zero <= latest and one.step >= earliest), None)


def planned_rise(run: Run, onset: float, end: float) -> Series | None:
    """Return what a plan raises between two steps, such as the weight of a term or a margin, if anything is.

    A plan has no noise: it takes few strides, all upward. Counters, clocks and rates, which are planned too, are none
    of it, but a margin may be one.
    """
    for series in run.series.values():
        if series.role is not None and series.role.quantity is not Quantity.MARGIN:
            continue
        value, step = series.finite.value, series.finite.step
        strides = np.diff(value)
        if len(value) < 2 * LEAST or not (strides >= 0).all() or step[-1] == value[-1]:
            continue
        wide = strides[strides > 0]
        if len(wide) < LEAST or len({f"{one:.2g}" for one in wide}) > STRIDES:
            continue
        before, after = series.finite.at(onset), series.finite.at(end)
        if before is not None and after is not None and after > RAISED * before >= 0:
            return series
    return None


def measured_term(run: Run) -> Series | None:
    """Return the term of the training loss that evaluation measures alone; None where it measures the whole."""
    if "eval_loss" not in run or "loss" not in run or _is_near(run["loss"], run["eval_loss"]):
        return None
    terms = (one for one in run.with_role(Quantity.LOSS, phase="train", parts=True) if one.name != "loss")
    return next((one.finite for one in terms if _is_near(one, run["eval_loss"])), None)


def _is_near(loss: Series, evaluation: Series) -> bool:
    _, train, held_out = beside_training(loss.finite, evaluation)
    sound = (train > 0) & (held_out > 0)
    return bool(sound.any() and sound.all()) and abs(np.log(median(train / held_out))) < NEAR_LOG


def _sets_in(series: Series) -> SetsIn | None:
    there = np.flatnonzero(series.value)
    if len(there) < LEAST or there[0] < LEAST or 2 * len(there) < len(series) - there[0]:
        return None
    first = int(there[0])
    return SetsIn(series.name, float(series.step[first - 1]), float(series.step[first]))
