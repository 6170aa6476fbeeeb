"""What a recorder saw of what a model is fed: rows that start over, rows and numbers of the evaluation, odd batches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.looks import LEAST, Seen, latest
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.measure.unknown import CannotTell, require_values
from mldebug_mcp.text import figure

FEWEST = 20
"""Batches of which the spread is known. Chosen: a course of as many has a level and a noise."""
TIMES, FAR = 2.0, 10.0
"""A batch is odd whose spread is so many times the usual, or its part, and so many median deviations off. Chosen:
neither batches of few rows nor images of all kinds come near."""
FEW = 0.1
"""Share of odd batches. Chosen: what more of them are is no oddity."""
TINY = 1e-12
"""What stands for a spread of nothing. Chosen: no sound batch comes near."""
SHOWN = 10
"""Steps that are listed. Chosen: a line holds as many."""
SHARE = 0.1
"""Of rows of the evaluation, over all looks. Chosen: where rows are short, a twentieth of them are alike by chance."""
APART = 0.25
"""Largest difference between shares. Chosen: that of batches of a few images each is the half of it."""
IN_A_ROW = 5
"""Steps whose rows come again in the order they had. Chosen: rows that are drawn anew do so for one step."""
MID_PASS = 0.02
"""Of a pass, by which a place is within it. Chosen: rounding, and a last batch that is dropped."""


def rows_start_over(run: Run) -> Seen | None:
    """Return the first resume from which on the rows of an earlier stretch come again in the same order.

    Not the steps that are made again because they were lost, nor a new pass that begins just there.
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
            said = f"from the resume at {run.place(step)} on come the rows of {figure(far)} steps before"
            return Seen(said, (step,), {"distance": far})
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


def rows_of_evaluation(run: Run) -> Seen | None:
    """Return that rows of the evaluation are trained on."""
    looks = run["rows_evaluated"].finite if "rows_evaluated" in run else None
    if looks is None or len(looks) < LEAST:
        raise CannotTell(f"a recorder compared fewer than {LEAST} batches with the evaluation")
    share = float(looks.value.mean())
    if share < SHARE:
        return None
    first = float(looks.step[int(np.argmax(looks.value > 0))])
    said = f"{figure(100 * share)} % of the rows of {len(looks)} batches of the training were in an evaluation before"
    return Seen(said, (first,), {"share": share, "batches": len(looks)})


def inputs_of_evaluation(run: Run) -> Seen | None:
    """Return that the numbers which the model is fed in evaluation are distributed otherwise."""
    _, apart, looks = latest(run, "inputs_apart")
    if apart < APART:
        return None
    said = f"the shares of inputs below some bound differ by {figure(100 * apart)} % between evaluation and training"
    return Seen(f"{said}, at {looks} looks", (), {"apart": apart, "looks": looks})


def odd_inputs(run: Run) -> Seen | None:
    """Return the few batches whose numbers vary far more or far less than those of all others."""
    if "inputs_spread" not in run:
        raise CannotTell("no recorder saw how much the inputs vary")
    known = require_values(run["inputs_spread"].finite, FEWEST)
    usual = median(known.value)
    if usual <= 0:
        return None
    logs = np.abs(np.log(np.maximum(known.value, TINY) / usual))
    odd = logs >= max(np.log(TIMES), FAR * median(logs))
    if not 0 < np.count_nonzero(odd) <= FEW * len(known):
        return None
    steps, oddest = known.step[odd], float(known.value[np.argmax(logs)])
    where = run.place(steps[0]) + (f" and {len(steps) - 1} more" if len(steps) > 1 else "")
    said = f"the inputs at {where} have a spread of {figure(oddest)}; {figure(usual)} is usual"
    return Seen(said, tuple(steps[:SHOWN].tolist()), {"batches": len(steps), "spread": oddest, "usual": usual})
