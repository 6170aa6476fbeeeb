"""How a training loss rises: for good, and back again, slowly after a fall, or throughout the log."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.rise import Rise, rise_for_good
from mldebug_mcp.measure.rise_beside import gradient_levels, rate_there
from mldebug_mcp.measure.statistics import (
    aligned,
    blocks,
    drift,
    end_level,
    median,
    monotone,
    positive,
    sample,
    start_level,
)
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.symptoms.terms import refuse_new_terms, term_set_in
from mldebug_mcp.text import counted, figure

LEAST_OF_RISE, LEAST_OF_HUMP = 5, 12
"""Finite records without which it cannot be told."""
SHORT = 8
"""Records of step time and loss without which their order says nothing."""
LONGER, TOGETHER = 1.5, 0.8
"""Steps take so many times as long at the end, and come in this order with the loss (Spearman): batches that grow cost
more of both where a loss is a sum over their length. Chosen by hand."""
HEIGHT = 1.4
"""The top stands at this multiple of the level at the start. A well initialised model begins near its worst loss."""
SIGMAS_OF_HUMP = 6.0
"""... and this far above the noise of block medians, and above what the first records leave in doubt."""
WAY_BACK = 0.5
"""At least this share of the climb is lost again by the end; else it is a divergence."""
STRETCHES = 20
LONG = 5
"""Blocks of the log, a quarter of it, over which the loss climbs."""
RISE_OF_LOWEST = 0.03
"""Of the lowest level. Other data, or a longer context, change a language model's loss at one step. Chosen by hand."""
SIGMAS_OF_TURN = 6.0
STEADY = 0.85
"""Rank correlation with time from the lowest block on: the loss climbs, it does not step up."""
AT_ONCE = 0.6
"""Of the rise: more than this from one block to the next is a step."""
LEAST = 0.005
"""The straight line through the curve rises by this share of its level ..."""
SIGMAS = 6.0
"""... and by this many times its error ..."""
ALIKE = 0.5
"""... and the medians of twenty stretches go up in order (Spearman's rank correlation).

All three were chosen so that none of 400 healthy runs of benchmarks/faults rises.
"""
MANY = 40
ALIKE_OF_FEW = 0.9
"""Fewer records go up in order one by one."""
POINTS = 10

DECAYED = 0.5
"""Of its peak: to this the rate has come down where it is no longer high. Chosen by hand."""
CALM = 1.5
"""Times its level before: up to this the gradient norm is as before. Chosen by hand."""


def for_good(run: Run) -> Evidence | None:
    """Say whether the loss rises and is still up where the log ends."""
    _need(run, LEAST_OF_RISE)
    loss = run["loss"].finite
    rise = rise_for_good(run)
    if rise is None:
        return None
    if _takes_longer(run, loss):
        raise CannotTell("the steps take longer just as the loss rises: their batches may be longer")
    if (term := term_set_in(run, float(loss.step[rise.at]))) is not None:
        raise CannotTell(f"{term.name} sets in at {run.step_name} {figure(term.step)}, and the loss rises with it")
    return _risen(run, loss, rise)


def _takes_longer(run: Run, loss: Series) -> bool:
    """Say whether the time of a step rises with the loss."""
    if "step_time" not in run:
        return False
    _, time, value = aligned(run["step_time"].finite, loss)
    if len(value) < SHORT or end_level(time) < LONGER * start_level(time):
        return False
    return monotone(value[np.argsort(time, kind="stable")]) >= TOGETHER


def _risen(run: Run, loss: Series, rise: Rise) -> Evidence:
    onset, start = float(loss.step[rise.at]), start_level(loss.value)
    lr = run["learning_rate"].at(onset) if "learning_rate" in run else None
    beside = f"; the learning rate at that {run.step_name} is {figure(lr)}" if lr is not None else ""
    return Evidence(
        f"loss rises from {figure(rise.lowest)} to {figure(rise.end)} from {run.step_name} {figure(onset)} on "
        f"and stays up to the end (it began around {figure(start)}){beside}",
        steps=(onset,),
        values={"best": rise.lowest, "end": rise.end, "start": start, "rise": rise.end - rise.lowest},
    )


def and_back(run: Run) -> Evidence | None:
    """Say whether the loss climbs above its start for a stretch and comes back down."""
    _need(run, LEAST_OF_HUMP)
    refuse_new_terms(run)
    loss = run["loss"].finite
    cut = blocks(loss.value)
    top = int(cut.level.argmax())
    start, peak, end = start_level(loss.value[: max(3, len(loss) // 50)]), float(cut.level[top]), end_level(loss.value)
    climb = peak - start
    first = loss.value[: max(3, len(loss) // 50)]
    doubt = 1.25 * float(np.std(first)) / math.sqrt(len(first))  # of a median
    least = SIGMAS_OF_HUMP * max(cut.wobble, doubt)
    if start <= 0 or peak < HEIGHT * start or climb < least or peak - end < WAY_BACK * climb:
        return None
    if positive(loss.value) and math.log(peak / start) < SIGMAS_OF_HUMP * blocks(np.log(loss.value)).wobble:
        return None  # noise that multiplies reaches far up
    onset = float(loss.step[int((loss.value > start + 0.2 * climb).argmax())])
    lr = run["learning_rate"].at(onset) if "learning_rate" in run else None
    beside = f"; the learning rate at that {run.step_name} is {figure(lr)}" if lr is not None else ""
    return Evidence(
        f"loss climbs from {figure(start)} at the start to {figure(peak)} around {run.step_name} "
        f"{figure(float(loss.step[cut.first[top]]))} and is {figure(end)} at the end{beside}",
        steps=(onset,),
        values={"start": start, "peak": peak, "end": end, "factor": peak / start},
    )


def slowly(run: Run) -> Evidence | None:
    """Say whether the loss turns and climbs up to the end, though not far."""
    if rise_for_good(run) is not None:
        raise CannotTell("the loss diverges, which says more")
    _need(run, 3 * STRETCHES, "preference", "boosting")
    loss = run["loss"].finite
    cut = blocks(loss.value, STRETCHES)
    best = int(np.argmin(cut.level))
    after = cut.level[best:]
    rise = float(after[-1] - after[0])
    if best == 0 or len(after) <= LONG:
        raise CannotTell("the loss does not turn well before the end of the log")
    if rise < max(RISE_OF_LOWEST * abs(float(after[0])), SIGMAS_OF_TURN * cut.wobble):
        return None
    if monotone(after) < STEADY or float(np.diff(after).max()) > AT_ONCE * rise:
        return None
    onset = float(loss.step[int(cut.first[best])])
    return Evidence(
        f"loss turns at {run.step_name} {figure(onset)} and climbs from {figure(float(after[0]))} to "
        f"{figure(float(after[-1]))} up to the end",
        steps=(onset,),
        values={"lowest": float(after[0]), "end": float(after[-1])},
    )


def throughout(run: Run) -> Evidence | None:
    """Say whether the loss rises from the beginning of the log to its end."""
    _need(run, POINTS, "diffusion")
    loss = run["loss"].finite
    if len(loss) < len(run["loss"]) or rise_for_good(run) is not None:
        raise CannotTell("the loss diverges or is not finite, which says more")
    values = loss.value[len(loss) // 20 :]
    moved, level = drift(values), abs(median(sample(values)))
    rises = moved.change > SIGMAS * moved.error and moved.change > LEAST * level
    alike, stretches = (ALIKE, blocks(values, 20).level) if len(loss) >= MANY else (ALIKE_OF_FEW, values)
    if not rises or monotone(stretches) < alike or end_level(values) <= start_level(values):
        return None
    evaluation = run["eval_loss"].finite.value if "eval_loss" in run else np.empty(0)
    beside = (
        f"; eval_loss goes from {figure(float(evaluation[0]))} to {figure(float(evaluation[-1]))}"
        if len(evaluation) > 1
        else ""
    )
    return Evidence(
        f"loss rises from a level of {figure(start_level(values))} at first to {figure(end_level(values))} at the "
        f"end, its trend by {figure(moved.change)} ± {figure(moved.error)}{beside}",
        steps=(float(loss.step[0]),),
        values={"start": start_level(values), "end": end_level(values), "rise": moved.change, "error": moved.error},
    )


def _need(run: Run, records: int, *not_for: str) -> None:
    """Raise CannotTell for a run of fewer finite losses, or of a kind whose loss may rise."""
    if run.kind in not_for:
        raise CannotTell(f"not judged for a run of kind {run.kind}")
    if (count := len(run["loss"].finite)) < records:
        raise CannotTell(f"loss has {counted(count, 'finite value')} here; {records} are needed")


def after_decay(run: Run, onset: float) -> Evidence | None:
    """Say whether the rate had come down from its peak where the loss begins to rise for good."""
    there = rate_there(run, onset)
    if there is None:
        raise CannotTell("no learning rate is logged up to where the loss begins to rise")
    if there.rate > DECAYED * there.peak:
        return None
    return Evidence(
        f"learning_rate is {figure(there.rate)} at {run.step_name} {figure(onset)}, where the loss begins to rise; its "
        f"peak was {figure(there.peak)} at {figure(there.peak_step)}",
        steps=(onset,),
        values={"rate": there.rate, "peak": there.peak},
    )


def gradient_calm(run: Run, onset: float) -> Evidence | None:
    """Say whether the gradient norm keeps its level while the loss rises for good."""
    levels = gradient_levels(run, onset)
    if levels is None:
        raise CannotTell("too few gradient norms are logged on either side, or they are lost or clipped")
    if levels.after > min(CALM * levels.before, levels.highest):
        return None
    return Evidence(
        f"the level of grad_norm is {figure(levels.before)} up to {run.step_name} {figure(onset)}, where the loss "
        f"begins to rise, and {figure(levels.after)} from there on",
        steps=(onset,),
        values={"before": levels.before, "after": levels.after},
    )
