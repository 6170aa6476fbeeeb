"""A log's evaluation losses, and what compares them with the training loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.scale import LANGUAGE_MODELS
from mldebug_mcp.measure.statistics import MEDIAN_ERROR, median, noise, row_medians, start_level
from mldebug_mcp.measure.unknown import CannotTell
from mldebug_mcp.text import figure

NEAR = 5
"""Training records, at most, whose median stands for the loss at an evaluation. Chosen: earlier ones are out of
date."""
SHORT = 20
"""In a log of fewer records, mostly one to an epoch, the first three hold much of the learning. Chosen: by hand."""
LATE = 3.5
"""Intervals between evaluations until the first: one or two are usual, three where training warms up. Chosen: by
hand."""
EXPLODED = 100.0
"""Times the loss at the start: no evaluation of weights that a run began with, or made better, comes there. Chosen: by
hand."""
IN_STEP, TIMES, FAR, LEAST_IN_STEP = 1.35, 3.0, 2.0, 4
"""How far apart the ratios of evaluation and training loss may lie, how large they are at least, how many times both
fall, and over how many evaluations, for them to be one quantity on two scales. Chosen: by hand."""
MANY_TIMES, FALLS = 10.0, 1.3
"""... and a ratio of which it is enough that evaluation falls less. Chosen: no held-out set is so much harder."""
SUM_OF_BATCHES = 4.0
"""Times the evaluation loss: dropout and augmentation do not raise a training loss so far. Chosen: by hand."""
STANDS, LEAST_STANDING, EARLY = 0.01, 4, 0.2
"""An evaluation loss within 1 % of its level does not move, as a fixed set has no sampling noise: over so many
evaluations, the first of them within this share of the run. Chosen: by hand."""
_ERRORS = (Quantity.SQUARED_ERROR, Quantity.ROOT_SQUARED_ERROR, Quantity.ABSOLUTE_ERROR)
_COMPONENTS = frozenset(["box", "bbox", "cls", "dfl", "obj", "kl", "aux", "value", "policy", "reward"])
"""Parts of a detector's or a VAE's loss, which move by rules of their own."""


def evaluation_losses(run: Run) -> list[Series]:
    """Return the evaluation losses: `eval_loss` and those of named sets such as `eval_g0_loss`.

    Raises CannotTell if there is none.
    """
    found = _of_whole_sets(run, Quantity.LOSS)
    if not found:
        raise CannotTell("not logged: eval_loss")
    return found


def _of_whole_sets(run: Run, *quantities: Quantity) -> list[Series]:
    """Return what is measured at evaluation on a whole set, `eval_loss` first: of no component of a loss."""
    found = [
        one
        for one in run.with_role(*quantities, phase="eval", parts=True)
        if one.role is not None and _COMPONENTS.isdisjoint(one.role.part.split(" "))
    ]
    return sorted(found, key=lambda one: (one.name != "eval_loss", one.name))


LEAST_THIRD, SURE, RESTS = 5, 2.0, 0.05
"""Values of a third, standard errors of what it may be apart from another, and the share of the level that this may
come to. Chosen: 1 in 40, and what a run that learns gains at least."""


def evaluation_stands(run: Run) -> bool:
    """Say whether an evaluation loss or error, which has hardly any noise, stands still from early on to the end."""
    for logged in _of_whole_sets(run, Quantity.LOSS, *_ERRORS):
        one = logged.finite
        if len(one) >= LEAST_STANDING and one.step[0] <= EARLY * run.last_step:
            level = abs(median(one.value))
            return float(np.ptp(one.value)) <= STANDS * level or _rests_in_its_noise(one.value, level)
    return False


def _rests_in_its_noise(values: Floats, level: float) -> bool:
    """Say whether many noisy values go nowhere: what their first and last third may be apart is little."""
    third = len(values) // 3
    if third < LEAST_THIRD:
        return False
    apart = abs(median(values[:third]) - median(values[-third:]))
    return apart + SURE * noise(values) * MEDIAN_ERROR * math.sqrt(2 / third) <= RESTS * level


def begins_late(evaluation: Series) -> bool:
    """Say whether a log begins after evaluations that it does not hold: the first comes far later than one interval."""
    step = evaluation.finite.step
    return len(step) > 2 and float(step[0]) > LATE * median(np.diff(step))


def refuse_after_explosion(run: Run, evaluation: Series) -> None:
    """Raise CannotTell if training exploded before the first evaluation, and that shows the ruins.

    What evaluation does from there on, on weights that are far out, is no comparison with training.
    """
    if "loss" not in run:
        return
    loss, first = run["loss"].finite, evaluation.finite
    before = loss.value[loss.step <= first.step[0]] if len(first) else loss.value[:0]
    start = start_level(loss.value[:3]) if len(before) else 0.0
    if start > 0 and before.max() > EXPLODED * start and first.value[0] > EXPLODED * start:
        raise CannotTell(
            f"the training loss had gone from {figure(start)} to {figure(before.max())} before the first "
            f"evaluation, which is {figure(first.value[0])}: it shows what the explosion left"
        )


def beside_training(loss: Series, evaluation: Series) -> tuple[Floats, Floats, Floats]:
    """Return steps, training level and evaluation loss at each evaluation that training precedes, each (n,).

    The level is the median of the last records since the evaluation before, at most `NEAR` of them: where training is
    logged once between two evaluations it is that record, for earlier ones are out of date.
    """
    evaluation = evaluation.finite
    until = np.searchsorted(loss.step, evaluation.step, side="right")
    keep = until > 0
    ends = until[keep]
    since = np.maximum(np.concatenate([[0], ends[:-1]]), ends - NEAR)
    count = ends - np.minimum(since, ends - 1)
    train = np.empty(len(ends))
    for many in range(1, NEAR + 1):
        here = count == many
        train[here] = row_medians(loss.value[ends[here, np.newaxis] - np.arange(many, 0, -1)])
    return evaluation.step[keep], train, evaluation.value[keep]


def refuse_another_scale(train: Floats, evaluation: Floats) -> None:
    """Raise CannotTell if both losses fall by the same factor all the way, and far or from far apart.

    What is learnt then serves held-out rows as well: one is the sum over more rows, or in another unit.
    """
    if len(train) < LEAST_IN_STEP or not ((train > 0) & (evaluation > 0)).all():
        return
    times = evaluation / train
    if evaluation[0] < (FALLS if float(times.min()) > MANY_TIMES else FAR) * evaluation[-1]:
        return
    if float(times.min()) > max(TIMES, float(times.max()) / IN_STEP):
        raise CannotTell(
            f"both losses fall by the same factor, and their ratio stays between {figure(times.min())} and "
            f"{figure(times.max())}: they may be on different scales"
        )


def refuse_sums_of_epochs(run: Run) -> None:
    """Raise CannotTell if the training loss of each epoch is many times that of evaluation: it may be a sum.

    Loops of one's own often add up the loss of an epoch's batches and print that. A configured accumulation, or a
    language model, has other reasons for a multiple.
    """
    if run.step_name != "epoch" or run.kind in LANGUAGE_MODELS or run.setting("gradient_accumulation_steps"):
        return
    if "loss" not in run or "eval_loss" not in run:
        return
    _, train, evaluation = beside_training(run["loss"].finite, run["eval_loss"])
    if len(train) and (evaluation > 0).all() and (times := median(train / evaluation)) > SUM_OF_BATCHES:
        raise CannotTell(
            f"the training loss is {figure(times)} times the evaluation loss (median of {len(train)} epochs): it may "
            "be the sum over an epoch's batches"
        )


@dataclass(frozen=True, slots=True)
class Compared:
    """Training and evaluation at each evaluation, and where both have come to.

    Args:
        steps: Steps of the evaluations that training precedes, shape (n,).
        train: Training level at each (`beside_training`), shape (n,).
        evaluation: Evaluation loss at each, shape (n,).
        start: What the training loss was at first.
        later: The later half of the evaluations.
    """

    steps: Floats
    train: Floats
    evaluation: Floats
    start: float
    later: slice

    @property
    def train_level(self) -> float:
        """The median training level of the later half."""
        return median(self.train[self.later])

    @property
    def eval_level(self) -> float:
        """The median evaluation loss of the later half."""
        return median(self.evaluation[self.later])


def compared(run: Run, least: int) -> Compared:
    """Compare `eval_loss` with the training loss.

    Raises CannotTell if fewer than `least` evaluations stand behind a record of training.
    """
    loss = run["loss"].finite
    steps, train, evaluation = beside_training(loss, run["eval_loss"])
    if len(steps) < least:
        raise CannotTell(f"{len(steps)} evaluations that training precedes; {least} are needed")
    return Compared(steps, train, evaluation, start_of(run, loss), slice(len(steps) // 2, None))


def start_of(run: Run, loss: Series) -> float:
    """Return what a training loss began with."""
    start = start_level(loss.value)
    if len(loss) < SHORT or run.step_name == "epoch":  # means over epochs, of which the first few hold the learning
        return max(start, float(loss.value[0]))
    return start
