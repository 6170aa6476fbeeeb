"""The gap between evaluation and training loss while every training row is as new to the model as an evaluation row.

Within the first pass over the data a row is scored before it is learnt from, so that rows of one distribution have one
expected loss, in training and at evaluation: the gap that is to be expected is zero, whatever the model. Dropout and
augmentation make it negative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.beginning import PASSES
from mldebug_mcp.measure.passes import passes_at
from mldebug_mcp.measure.statistics import noise_on_slope
from mldebug_mcp.measure.unknown import CannotTell
from mldebug_mcp.text import figure

KEPT = 0.5
"""Of the first training loss, kept at the first evaluation: rows are not known by heart then. Chosen: half."""
FIRST_PASS = 1.02
"""Passes over the data up to which its rows are new. Chosen: loaders round up."""
LEAST = 4
"""Evaluations within the first pass without which its gap is not known. Chosen: by hand."""
NEAR = 20
"""Training records before an evaluation, at most, whose mean is compared with it: of those since the one before, the
later half. Chosen: a loss that falls fast is soon out of date."""


@dataclass(frozen=True, slots=True)
class FreshGap:
    """The gap within the first pass.

    Args:
        first: Evaluation less training loss at the first evaluation.
        last: The mean of that over the last third of the evaluations in the first pass.
        error: Standard error of `last`, from the noise of training and of the gaps among each other.
        train: Mean training loss over that last third.
        start: Training loss at first.
        step: Step of the first evaluation of that third.
        passes: Passes made at the last evaluation that counts.
        count: Evaluations within the first pass.
    """

    first: float
    last: float
    error: float
    train: float
    start: float
    step: float
    passes: float
    count: int


def fresh_gap(run: Run) -> FreshGap | None:
    """Return the gap within the first pass, None where passes are not known or it holds too few evaluations."""
    if "loss" not in run or "eval_loss" not in run:
        return None
    loss, evaluation = run["loss"].finite, run["eval_loss"].finite
    passes = passes_at(run, evaluation.step)
    if passes is None or not len(loss):
        return None
    until = np.searchsorted(loss.step, evaluation.step, side="right")
    keep = (until > 0) & (passes <= FIRST_PASS)
    if int(keep.sum()) < LEAST:
        return None
    ends, steps, held_out = until[keep], evaluation.step[keep], evaluation.value[keep]
    before = np.concatenate([[0], ends[:-1]])
    count = np.clip((ends - before + 1) // 2, 1, NEAR)
    total = np.concatenate([[0.0], np.cumsum(loss.value)])
    gap = held_out - (total[ends] - total[ends - count]) / count
    third = slice(len(gap) - max(2, len(gap) // 3), None)
    used = int(count[third].sum())
    return FreshGap(
        first=float(gap[0]),
        last=float(gap[third].mean()),
        error=max(noise_on_slope(loss.value) / used**0.5, noise_on_slope(gap) / len(gap[third]) ** 0.5),
        train=float((held_out - gap)[third].mean()),
        start=float(np.median(loss.value[:3])),
        step=float(steps[third][0]),
        passes=float(passes[keep][-1]),
        count=len(gap),
    )


def refuse_known_by_heart(run: Run, step: float, train: float, start: float) -> None:
    """Raise CannotTell if training rows may be known by heart at the first evaluation."""
    passes = passes_at(run, np.array([step]))
    if run.kind == "boosting" and step > 1:
        raise CannotTell(f"the first evaluation stands after {figure(step)} rounds: trees may know rows by heart")
    if passes is not None and float(passes[0]) > PASSES:
        raise CannotTell(f"the first evaluation stands at pass {figure(passes[0])}: rows may be memorised by then")
    fresh = passes is not None and float(passes[0]) <= FIRST_PASS
    if train < KEPT * start and not fresh:
        raise CannotTell(
            f"at the first evaluation ({run.place(step)}) the training loss had already gone from "
            f"{figure(start)} to {figure(train)}: whether they ever were close is not known"
        )
