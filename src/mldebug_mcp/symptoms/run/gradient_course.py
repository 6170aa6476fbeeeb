"""Does the gradient norm keep its level: does it rise over the run, or jump out of it?"""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.logs.settings.facts import POLICIES
from mldebug_mcp.measure.gradients import jumps_of
from mldebug_mcp.measure.statistics import median, start_level
from mldebug_mcp.measure.stretches import stretches_of
from mldebug_mcp.measure.turning import fails_at
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import by_outcome, first_seen
from mldebug_mcp.text import figure

GROWS, SIGMAS = 4.0, 6.0
"""Times the early level at the end, and standard errors of a level. Chosen: healthy norms drift by less than 4; the
second is chance in thousands of runs."""
BEGINNING, STRETCHES, END = 0.05, 12, 2
"""Share of the steps that is the beginning, stretches of those behind it, and of them those that are the end. Chosen:
norms settle in a twentieth of a run; a level of two stretches outlives an outlier."""
RISING, STILL = 0.8, 0.25
"""Share of pairs of stretches of which the later is the higher, and of the growth that the later half makes: a trend,
not one step. Chosen: chance gives a half; the norm of a model that leaves a plateau rises at once."""
FEWEST = 12
"""Norms that are needed. Chosen: six before a jump, and some behind."""
USUAL_SHARE, USUAL = 0.02, 5
"""Jumps, as a share of the records or in number, that are no exceptions. Chosen: then the norm is just noisy."""


def grad_norm_growing(run: Run, norm: Series) -> Evidence | None:
    """The gradient norm grows over the run to several times its early level.

    Not this when: it jumps and comes back (`grad_norm_spike`), or grows within the first steps only. Unknown where
    it grows only once the loss rises, which is no more than the loss says, and for agents.
    """
    if run.kind == "rl":
        raise CannotTell("not judged for a run of kind rl")
    found = _growth(run, norm)
    turn = fails_at(run["loss"]) if found is not None and "loss" in run else None
    if turn is not None and _growth(run, norm.where(norm.step <= turn)) is None:
        raise CannotTell(f"it grows only from {run.place(turn)} on, as the loss does")
    return found


def _growth(run: Run, norm: Series) -> Evidence | None:
    late = norm.where(norm.step >= norm.step[0] + BEGINNING * (norm.step[-1] - norm.step[0])) if len(norm) else norm
    if len(late) < STRETCHES // 2:
        return None
    cut = stretches_of(Series(late.name, late.step, np.log(late.value)), STRETCHES)
    lowest = int(np.argmin(cut.level[: max(1, len(cut.level) // 2)]))
    after = cut.level[lowest:]
    least, end = float(after[0]), median(after[-END:])
    rises = (after[None, :] > after[:, None])[np.triu_indices(len(after), 1)]
    still = end - median(after[len(after) // 2 :][:END]) >= STILL * (end - least)
    if end - least < max(math.log(GROWS), SIGMAS * cut.error) or rises.mean() < RISING or not still:
        return None
    first = float(cut.first[lowest + int(np.argmax(after > least + (end - least) / 4))])
    return Evidence(
        f"grad_norm grows from {figure(math.exp(least))} to {figure(math.exp(end))} from {run.place(first)} on",
        steps=(first,),
        values={"from": math.exp(least), "to": math.exp(end), "factor": math.exp(end - least)},
    )


def grad_norm_spike(run: Run, norm: Series) -> Evidence | None:
    """The gradient norm jumps to many times its recent level.

    Not this when: norms vary by that much all the time; the first steps of a run; a policy with little left to
    learn meets a surprise, and its norm is still no larger than in the first records.
    """
    found = jumps_of(norm)
    if run.kind in POLICIES:
        found = [spike for spike in found if norm.value[spike.peak] > start_level(norm.value)]
    if not found or len(found) > max(USUAL, USUAL_SHARE * len(norm)):
        return None
    worst = max(found, key=lambda spike: spike.height)
    at, top, level = float(norm.step[worst.first]), float(norm.value[worst.peak]), float(np.exp(worst.level))
    more = f"; {len(found)} such jumps in all" if len(found) > 1 else ""
    return Evidence(
        f"grad_norm jumps from {figure(level)} to {figure(top)} at {run.place(at)}{more}",
        steps=(at, *(float(norm.step[spike.first]) for spike in found if spike is not worst))[:10],
        values={"level_before": level, "peak": top, "factor": float(np.exp(worst.height)), "count": len(found)},
    )


@question(
    outcome_of(grad_norm_growing, 0.03, "axolotl_stability"),
    outcome_of(grad_norm_spike, 0.02, "axolotl_stability", as_chosen=True, follows=("loss_spike",)),
    needs=("grad_norm",),
    points=FEWEST,
)
def gradient_course(run: Run) -> Answers:
    """Compare the later stretches of the norm with the earlier ones, then each record with those before it."""
    norm = run["grad_norm"].finite
    norm = norm.where(norm.value > 0)
    if len(norm) < FEWEST:
        raise CannotTell(f"{len(norm)} positive gradient norms; {FEWEST} are needed")
    return first_seen(by_outcome((grad_norm_growing, grad_norm_spike), run, norm))
