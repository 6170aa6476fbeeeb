"""Which faults of rows, inputs, outputs and loss did a recorder see in the loop?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mldebug_mcp.checks.check import MAX_LISTED_STEPS, CannotTell, Evidence, ask_in_turn, outcome_of, require_values
from mldebug_mcp.checks.curve import aligned, finite_of
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.text import counted, figure
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.run import Run

# What a recorder found when it looked into a model, look by look, in words and numbers.


KEPT = "gradients_kept"
"""As a recording names the least norm of gradients before a backward pass since the last update."""
MIN_KEPT_LOOK_SHARE = 0.8
"""Share of the looks. Chosen: the first one has nothing to keep, a path that skips a step may keep some."""
MIN_LOOKS = 3
"""Looks. Chosen: at the first one nothing is learnt yet, and one may be odd."""
MIN_STALE_DEVIATIONS = 0.5
"""Standard deviations and logarithms of them together. Chosen: statistics that follow are off by 0.2 at most."""
FEW_FEATURES = 4
"""Numbers that the last layer reads. Chosen: fewer than any classifier is made of."""
TINY = 1e-12
"""What stands for nothing where something is divided by it. Chosen: no sound batch or factor comes near."""


def latest(run: Run, beginning: str) -> tuple[str, float, int]:
    """Return the metric that is highest of those whose names begin so, its median there, and how many looks there are.

    The later half of the looks counts.

    Raises:
        CannotTell: none has as many looks.
    """
    looks = [run[name].finite for name in run.series if name.startswith(beginning)]
    enough = [look for look in looks if len(look) >= MIN_LOOKS]
    if not enough:
        raise CannotTell(f"{beginning.rstrip('/')} is not recorded {MIN_LOOKS} times")
    levels = [
        (series.name.removeprefix(beginning), median(series.value[len(series) // 2 :]), len(series))
        for series in enough
    ]
    return max(levels, key=lambda level: level[1])


def running_statistics_stale(run: Run) -> Evidence | None:
    """Running statistics stay far from the batches'.

    Evaluation normalises by them. Not this when: they follow within some looks; batches have few values.
    """
    name, off, looks = latest(run, "statistics_apart/")
    if off < MIN_STALE_DEVIATIONS:
        return None
    summary = f"{name} has running statistics {figure(off)} deviations off those of the batches, at {looks} looks"
    return Evidence(summary, (), {"off": off, "looks": looks})


def gradients_kept(run: Run) -> Evidence | None:
    """Gradients are not zero before any backward pass.

    So each update takes those of all updates before. Not this when: they are cleared once between two updates, as
    where they are accumulated on purpose.
    """
    looks = finite_of(run, KEPT)
    if len(looks) < MIN_LOOKS:
        raise CannotTell("no recorder looked whether gradients are cleared")
    kept = looks.value > 0
    if kept.mean() < MIN_KEPT_LOOK_SHARE:
        return None
    first = int(kept.argmax())
    summary = (
        f"gradients are not zero before the backward pass, at {int(kept.sum())} of {counted(len(kept), 'look')}: from "
        f"earlier updates a norm of {figure(float(looks.value[first]))} is left at "
        f"{run.place(float(looks.step[first]))}, and {figure(float(looks.value[-1]))} at the end"
    )
    return Evidence(summary, (float(looks.step[first]),), {"looks": len(kept), "kept": float(kept.sum())})


def features_few(run: Run) -> Evidence | None:
    """The last layer reads four numbers or fewer for more classes.

    Not this when: it reads more; classes are not known; a picture is to be drawn of the features.
    """
    features, classes = run.setting("features"), run.facts.classes or run.facts.tokens
    if features is None or classes is None:
        raise CannotTell("no recorder saw what the last layer reads")
    if features > FEW_FEATURES or features >= classes:
        return None
    summary = f"the last layer reads {counted(int(features), 'number')} for {figure(classes)} classes"
    return Evidence(summary, (), {"features": features, "classes": classes})


# What a recorder saw of what a model is fed: rows that start over, rows and numbers of the evaluation, odd batches.


MIN_SPREAD_BATCHES = 20
"""Batches from which the spread is known. Chosen: a course of as many has a level and a noise."""
FED_TIMES = 2.0
"""Times the usual, or its part, that an odd batch spreads. Chosen: no batches of few rows or odd images come near."""
MIN_ODD_SPREAD_SIGMAS = 10.0
"""Median deviations that it is off. Chosen: neither batches of few rows nor images of all kinds come near."""
MAX_SHARE_OF_ODD_BATCHES = 0.1
"""Share of odd batches. Chosen: more of them are not odd."""
MIN_EVALUATED_ROW_SHARE = 0.1
"""Of rows of the evaluation, over all looks. Chosen: where rows are short, a twentieth of them are alike by chance."""
MIN_INPUT_SHARE_DIFFERENCE = 0.25
"""Largest difference between shares. Chosen: that of batches of a few images each is the half of it."""
IN_A_ROW = 5
"""Steps whose rows come again in the order they had. Chosen: rows that are drawn anew do so for one step."""
MID_PASS = 0.02
"""Of a pass, by which a place is within it. Chosen: rounding, and a last batch that is dropped."""


def rows_come_again(run: Run) -> Evidence | None:
    """From a resume on come the rows of an earlier stretch again.

    In the order that they had. Not this when: a new pass begins there; lost steps are made again.
    """
    if "row_again" not in run:
        raise CannotTell("no recorder saw which rows are in the batches")
    again = run["row_again"].finite
    for step, lost in _resumes(run):
        behind, before = again.where(again.step >= step), again.where(again.step < step)
        distances = behind.value[:IN_A_ROW]
        if len(distances) < IN_A_ROW or distances[0] in (0.0, lost) or np.ptp(distances) > 0:
            continue
        if distances[0] not in before.value[-IN_A_ROW:] and not _begins_a_pass(run, step):
            far = float(distances[0])
            summary = f"from the resume at {run.place(step)} on come the rows of {figure(far)} steps before"
            return Evidence(summary, (step,), {"distance": far})
    return None


def _resumes(run: Run) -> Iterator[tuple[float, float]]:
    """Yield the first steps behind resumes, and how many steps each of them makes again."""
    lost = {new.first_step: old.last_step - new.first_step + 1 for old, new in pairwise(run.segments)}
    for step in sorted({*lost, *run.resumes}):
        yield step, lost.get(step, 0.0)


def _begins_a_pass(run: Run, step: float) -> bool:
    per_pass = run.facts.steps_per_pass
    if not per_pass:
        return False
    passes = (step - 1) / per_pass
    return abs(passes - round(passes)) < MID_PASS and round(passes) > 0


def rows_evaluated(run: Run) -> Evidence | None:
    """Batches of the training hold rows of an evaluation.

    Value by value. Not this when: fewer than one row in ten is; no recorder saw both on the CPU.
    """
    looks = finite_of(run, "rows_evaluated")
    if len(looks) < MIN_LOOKS:
        raise CannotTell(f"a recorder compared fewer than {MIN_LOOKS} batches with the evaluation")
    share = float(looks.value.mean())
    if share < MIN_EVALUATED_ROW_SHARE:
        return None
    first = float(looks.step[int(np.argmax(looks.value > 0))])
    summary = (
        f"{figure(100 * share)} % of the rows of {len(looks)} batches of the training were in an evaluation before"
    )
    return Evidence(summary, (first,), {"share": share, "batches": len(looks)})


def inputs_differ(run: Run) -> Evidence | None:
    """Evaluation feeds the model other numbers than training.

    Not this when: shares of numbers up to any bound agree within a quarter; inputs are tokens.
    """
    _, apart, looks = latest(run, "inputs_apart")
    if apart < MIN_INPUT_SHARE_DIFFERENCE:
        return None
    summary = f"the shares of inputs below some bound differ by {figure(100 * apart)} % between evaluation and training"
    return Evidence(f"{summary}, at {looks} looks", (), {"apart": apart, "looks": looks})


def inputs_odd(run: Run) -> Evidence | None:
    """The inputs of a few batches vary far more or less than all others.

    Not this when: more than one batch in ten does; inputs are tokens.
    """
    if "inputs_spread" not in run:
        raise CannotTell("no recorder saw how much the inputs vary")
    known = require_values(run["inputs_spread"].finite, MIN_SPREAD_BATCHES)
    usual = median(known.value)
    if usual <= 0:
        return None
    logs = np.abs(np.log(np.maximum(known.value, TINY) / usual))
    odd = logs >= max(np.log(FED_TIMES), MIN_ODD_SPREAD_SIGMAS * median(logs))
    if not 0 < np.count_nonzero(odd) <= MAX_SHARE_OF_ODD_BATCHES * len(known):
        return None
    steps, oddest = known.step[odd], float(known.value[np.argmax(logs)])
    where = run.place(steps[0]) + (f" and {len(steps) - 1} more" if len(steps) > 1 else "")
    summary = f"the inputs at {where} have a spread of {figure(oddest)}; {figure(usual)} is usual"
    return Evidence(
        summary, tuple(steps[:MAX_LISTED_STEPS].tolist()), {"batches": len(steps), "spread": oddest, "usual": usual}
    )


# The loss that a loop logs beside the mean cross-entropy that a recorder worked out of the same outputs and labels.


ONCE = "recomputed/once"
"""The loss worked out anew of the outputs as logits, as a recording names it."""
TWICE = "recomputed/twice"
"""The same of their softmax as logits."""
SHIFTED = "recomputed/shifted"
"""The same with the label of the next token."""
MIN_TELLING_CROSS_ENTROPY = 1e-4
"""A cross-entropy below this tells no factor. Chosen: it is rounded to seven digits."""
MAX_EQUAL_LOSS_DEVIATION = 0.03
"""Part of a loss by which two are the same. Chosen: the mean over a part of a batch's rows is a little off."""
MIN_CLOSENESS_RATIO = 5.0
"""Times by which one is nearer to the loss than another. Chosen: where all rows count it is the same to six digits."""
RECOMPUTED_TIMES = 1.5
"""Times the mean cross-entropy. Chosen: two micro-batches that are summed make 2."""
MIN_UNLIKE_LOSS_DEVIATION = 0.3
"""Part of the mean cross-entropy. Chosen: label smoothing and weights of classes are off by less, most of the time."""


class LossRatio(NamedTuple):
    """A logged loss over another one, look by look.

    Args:
        factor: The median.
        off: The median distance from that factor, as a share of it.
        from_one: The median distance from 1.
        looks: How many there are.
        first: The step of the first.
    """

    factor: float
    off: float
    from_one: float
    looks: int
    first: float


def loss_multiplied(run: Run) -> Evidence | None:
    """The loss is a multiple of the outputs' cross-entropy.

    Not this when: the multiple changes, as with weights of classes or other terms; it is below 1.5.
    """
    comparison = loss_ratio(run)
    if comparison.factor < RECOMPUTED_TIMES or comparison.off > MAX_EQUAL_LOSS_DEVIATION:
        return None
    times = f"{figure(comparison.factor)} times the mean cross-entropy of the outputs"
    summary = f"the loss is {times}, at {comparison.looks} looks"
    return Evidence(summary, (comparison.first,), {"factor": comparison.factor, "looks": comparison.looks})


def softmax_taken_twice(run: Run) -> Evidence | None:
    """The loss takes a softmax of what a softmax gave.

    So it is the cross-entropy of the softmax of the outputs. Not this when: it is that of the outputs.
    """
    once, twice = loss_ratio(run), loss_ratio(run, TWICE)
    if twice.from_one > MAX_EQUAL_LOSS_DEVIATION or once.from_one < max(
        MAX_EQUAL_LOSS_DEVIATION, MIN_CLOSENESS_RATIO * twice.from_one
    ):
        return None
    summary = f"the loss is that of a second softmax at {once.looks} looks, and {once.from_one:.0%} off that of one"
    return Evidence(summary, (once.first,), {"off": once.from_one, "looks": once.looks})


def loss_unlike_outputs(run: Run) -> Evidence | None:
    """The loss is not the outputs' cross-entropy.

    Nor a multiple of it. Not this when: it is off by less than a third, as with smoothed labels.
    """
    comparison = loss_ratio(run)
    if comparison.from_one < MIN_UNLIKE_LOSS_DEVIATION:
        return None
    summary = (
        f"the loss is now more, now less than {figure(comparison.factor)} times the mean cross-entropy of the outputs"
    )
    return Evidence(
        summary,
        (comparison.first,),
        {"factor": comparison.factor, "off": comparison.from_one, "looks": comparison.looks},
    )


def loss_ratio(run: Run, name: str = ONCE) -> LossRatio:
    """Return the loss over what was worked out anew; with two alignments of the labels, over the better one.

    Raises:
        CannotTell: no recorder saw outputs and labels often enough.
    """
    names = [text for text in ((ONCE, SHIFTED) if name == ONCE else (name,)) if text in run and "loss" in run]
    found = [comparison for each in names if (comparison := _ratio_of(run, each)) is not None]
    if not found:
        raise CannotTell(f"no recorder saw the outputs of the model and labels {MIN_LOOKS} times")
    return min(found, key=lambda candidate: candidate.off)


def _ratio_of(run: Run, name: str) -> LossRatio | None:
    steps, logged, anew = aligned(run["loss"].finite, run[name].finite)
    is_large = anew > MIN_TELLING_CROSS_ENTROPY
    if np.count_nonzero(is_large) < MIN_LOOKS:
        return None
    ratios: Floats = logged[is_large] / anew[is_large]
    factor = median(ratios)
    off = median(np.abs(ratios - factor)) / max(abs(factor), TINY)
    return LossRatio(factor, off, median(np.abs(ratios - 1)), int(is_large.sum()), float(steps[is_large][0]))


# What did a recorder see in the loop that ought not to be: of rows, inputs, outputs, and the loss made of them?


ask_in_turn(
    "seen_in_the_loop",
    outcome_of(gradients_kept, 0.001, as_chosen=True),
    outcome_of(rows_come_again, 0.002, as_chosen=True),
    outcome_of(rows_evaluated, 0.003, as_chosen=True),
    outcome_of(inputs_differ, 0.01, as_chosen=True),
    outcome_of(loss_multiplied, 0.002, as_chosen=True),
    outcome_of(softmax_taken_twice, 0.001, as_chosen=True),
    outcome_of(loss_unlike_outputs, 0.02, as_chosen=True),
    outcome_of(running_statistics_stale, 0.003, as_chosen=True),
    outcome_of(inputs_odd, 0.01, as_chosen=True),
    outcome_of(features_few, 0.003, as_chosen=True),
    any_of=("gradients_kept", "row_again", "rows_evaluated", "inputs_*", "recomputed/*", "statistics_apart/*"),
    whole=True,
)
