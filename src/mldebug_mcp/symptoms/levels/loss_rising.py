"""How a training loss rises: for good, and back again, slowly after a fall, or throughout the log."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.rise import rise_for_good
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
from mldebug_mcp.measure.terms import planned_rise, refuse_new_terms, term_set_in
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

LEAST_OF_RISE, LEAST_OF_HUMP, LEAST_OF_TREND, LEAST_OF_TURN = 5, 12, 10, 60
"""Finite records without which each cannot be told. Chosen: as many as their blocks take."""
SHORT, LONGER, TOGETHER = 8, 1.5, 0.8
"""Records in which the time of steps rises with the loss, by what factor, and in what order. Chosen: longer batches
cost more of both."""
HEIGHT, WAY_BACK, CLEAR = 1.4, 0.5, 6.0
"""Times the start that a hump stands at, share of it that is lost again, and noise. Fitted: runs at 10 to 400 times a
good learning rate."""
STRETCHES, LONG = 20, 5
"""Stretches of a log, and how many of them it climbs. Chosen: the last quarter."""
OF_LOWEST, STEADY, AT_ONCE = 0.03, 0.85, 0.6
"""Share of the lowest level, rank correlation with time, and share of a single step. Chosen: other data are a step."""
LEAST, SIGMAS, ALIKE = 0.005, 6.0, 0.5
"""Share of the level and errors of the trend, and its rank correlation. Fitted: 400 healthy runs of benchmarks/faults,
none of which rises."""
MANY, ALIKE_OF_FEW = 40, 0.9
"""Fewer records go up in order one by one. Chosen: by chance hardly ever."""


def loss_divergence(run: Run) -> Evidence | None:
    """The training loss rises well above its best level and is still there at the end of the log.

    Not this when: it comes back; steps take longer just as it rises, or a term sets in there, which is unknown.
    """
    _need(run, LEAST_OF_RISE)
    loss = run["loss"].finite
    rise = rise_for_good(run)
    if rise is None:
        return None
    if _takes_longer(run, loss):
        raise CannotTell("the steps take longer just as the loss rises: their batches may be longer")
    onset, start = float(loss.step[rise.at]), start_level(loss.value)
    if (plan := planned_rise(run, onset, float(loss.step[-1]))) is not None:
        raise CannotTell(
            f"{plan.name} is raised by plan to {figure(plan.finite.value[-1])}, and the loss rises with it"
        )
    if (term := term_set_in(run, onset)) is not None:
        raise CannotTell(f"{term.name} sets in at {run.place(term.step)}, and the loss rises with it")
    return Evidence(
        f"loss rises from {figure(rise.lowest)} to {figure(rise.end)} from {run.place(onset)} on and "
        f"stays up to the end (it began around {figure(start)}){_rate(run, onset)}",
        steps=(onset,),
        values={"best": rise.lowest, "end": rise.end, "start": start, "rise": rise.end - rise.lowest},
    )


def _takes_longer(run: Run, loss: Series) -> bool:
    """Say whether the time of a step rises with the loss."""
    if "step_time" not in run:
        return False
    _, time, value = aligned(run["step_time"].finite, loss)
    if len(value) < SHORT or end_level(time) < LONGER * start_level(time):
        return False
    return monotone(value[np.argsort(time, kind="stable")]) >= TOGETHER


def _rate(run: Run, step: float) -> str:
    rate = run["learning_rate"].at(step) if "learning_rate" in run else None
    return "" if rate is None else f"; the learning rate at that {run.step_name} is {figure(rate)}"


def loss_hump(run: Run) -> Evidence | None:
    """The training loss climbs far above the level at which it began, for a stretch, and comes back down.

    Not this when: it stays up; it rose from a good level, and not above the start; one or two records stand out.
    """
    _need(run, LEAST_OF_HUMP)
    refuse_new_terms(run)
    loss = run["loss"].finite
    cut = blocks(loss.value)
    first = loss.value[: max(3, len(loss) // 50)]
    top, start, end = int(cut.level.argmax()), start_level(first), end_level(loss.value)
    peak = float(cut.level[top])
    climb, doubt = peak - start, 1.25 * float(np.std(first)) / math.sqrt(len(first))  # of a median
    least = CLEAR * max(cut.wobble, doubt)
    if start <= 0 or peak < HEIGHT * start or climb < least or peak - end < WAY_BACK * climb:
        return None
    if positive(loss.value) and math.log(peak / start) < CLEAR * blocks(np.log(loss.value)).wobble:
        return None  # noise that multiplies reaches far up
    onset = float(loss.step[int((loss.value > start + climb / 5).argmax())])
    return Evidence(
        f"loss climbs from {figure(start)} at the start to {figure(peak)} around "
        f"{run.place(loss.step[cut.first[top]])} and is {figure(end)} at the end{_rate(run, onset)}",
        steps=(onset,),
        values={"start": start, "peak": peak, "end": end, "factor": peak / start},
    )


def loss_rises(run: Run) -> Evidence | None:
    """The training loss rises slowly over the whole log, or turns after a fall and climbs over its last quarter.

    Not this when: the rise is within the noise, or one step, as with other data; it rises far (`loss_divergence`).
    """
    _need(run, LEAST_OF_TREND, "diffusion")
    loss = run["loss"].finite
    if len(loss) < len(run["loss"]) or rise_for_good(run) is not None:
        raise CannotTell("the loss diverges or is not finite, which says more")
    return _throughout(run, loss) or _after_a_fall(run, loss)


def _throughout(run: Run, loss: Series) -> Evidence | None:
    values = loss.value[len(loss) // 20 :]
    moved, level = drift(values), abs(median(sample(values)))
    start, end = start_level(values), end_level(values)
    rises = moved.change > SIGMAS * moved.error and moved.change > LEAST * level and end > start
    alike, stretches = (ALIKE, blocks(values, STRETCHES).level) if len(loss) >= MANY else (ALIKE_OF_FEW, values)
    if not rises or monotone(stretches) < alike:
        return None
    return Evidence(
        f"loss rises from a level of {figure(start)} at first to {figure(end)} at the end, its trend by "
        f"{figure(moved.change)} ± {figure(moved.error)} from {run.place(loss.step[0])} on",
        steps=(float(loss.step[0]),),
        values={"start": start, "end": end, "rise": moved.change, "error": moved.error},
    )


def _after_a_fall(run: Run, loss: Series) -> Evidence | None:
    if len(loss) < LEAST_OF_TURN or run.kind in ("preference", "boosting"):
        return None
    cut = blocks(loss.value, STRETCHES)
    best = int(np.argmin(cut.level))
    after = cut.level[best:]
    rise = float(after[-1] - after[0])
    clear = rise >= max(OF_LOWEST * abs(float(after[0])), SIGMAS * cut.wobble)
    if best == 0 or len(after) <= LONG or not clear:
        return None
    if monotone(after) < STEADY or float(np.diff(after).max()) > AT_ONCE * rise:
        return None
    onset = float(loss.step[int(cut.first[best])])
    said = f"loss turns at {run.place(onset)} and climbs from {figure(after[0])} to {figure(after[-1])} up to the end"
    return Evidence(said, steps=(onset,), values={"lowest": float(after[0]), "end": float(after[-1])})


def _need(run: Run, records: int, *not_for: str) -> None:
    """Raise CannotTell for a run of fewer finite losses, or of a kind whose loss may rise."""
    if run.kind in not_for:
        raise CannotTell(f"not judged for a run of kind {run.kind}")
    if (count := len(run["loss"].finite)) < records:
        raise CannotTell(f"loss has {count} finite values here; {records} are needed")
