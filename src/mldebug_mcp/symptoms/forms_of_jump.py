"""What is told of the jumps of a loss, beside the fact: how many, how high, how they end, and what came before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.events import Shape, interval, passes_at, rate_jump, shape_of
from mldebug_mcp.measure.spikes import Spike
from mldebug_mcp.measure.statistics import end_level, monotone, start_level
from mldebug_mcp.symptoms.gradient_first import gradient_left_level
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import counted, figure

LEAST_RECORDS, LONG = 12, 20
"""Finite records from which on a jump's height says something, and from which on several jumps are more than noise."""
SHARE_OF_START = 0.2
"""Of the loss at the start: a jump of this height. Hard batches of healthy runs make lower ones. Chosen by hand."""
AT_ONCE = 0.02
"""One jump is over within this share of the log, or three records. Chosen by hand."""
SHOWN = 6
GROWING, RISING, TIMES = 4, 0.9, 1.8
"""Jumps of which it can be told, the rank correlation of their heights with time, and how many times as high the last
third of them is as the first. Of six jumps in random order one in a hundred has that correlation. Chosen by hand."""
APART = 5.0
"""Steps from record to record beyond which a record is a mean over so many that what fades within them seems to be over
at once."""
FADES = 2
"""Records between half of the height and the level before: what comes back over more was not one batch."""
MARK_SIGMAS, MARK_SHARE, MARK_OF_LEVEL = 4.0, 0.05, 0.02
"""How far the level behind a jump stands above that before it: standard errors, and shares of the height and of the
level. Chosen on our own runs, where batches of bad data leave less than 2 standard errors or 2 % of the height."""
SAME_PLACE, LEAST_IN_PLACE = 0.03, 3
"""Passes by which jumps lie off one place in the pass at most, and how many jumps that takes. By chance three lie so
near each other in one of a hundred runs."""
EDGE = 0.03
"""Of a pass, at its beginning or end: there the last batch may be a small one, whose loss is noisy."""


@dataclass(frozen=True, slots=True)
class Jumps:
    """The jumps of the loss of a run.

    Args:
        run: The run.
        loss: Its finite losses.
        found: Its jumps in order, at least one.
    """

    run: Run
    loss: Series
    found: list[Spike]

    @property
    def worst(self) -> Spike:
        """The highest of them."""
        return max(self.found, key=lambda spike: spike.height)

    def step(self, spike: Spike) -> float:
        """Return the step at which one begins."""
        return float(self.loss.step[spike.first])


def high(jumps: Jumps) -> Evidence | None:
    """Say whether the highest jump is as high as a good part of the loss at the start."""
    _need(jumps, LEAST_RECORDS)
    worst = jumps.worst
    _refuse_densities(jumps.loss, worst)
    start = start_level(jumps.loss.value)
    if not start or worst.height < SHARE_OF_START * abs(start):
        return None
    at = jumps.step(worst)
    return Evidence(
        f"the jump at {jumps.run.step_name} {figure(at)} is {figure(worst.height)} high; "
        f"the loss began around {figure(start)}",
        steps=(at,),
        values={"height": worst.height, "start": start, "share": worst.height / abs(start)},
    )


def single(jumps: Jumps) -> Evidence | None:
    """Say whether there is one jump alone, over at once."""
    _need(jumps, LEAST_RECORDS)
    spike = jumps.found[0]
    _refuse_densities(jumps.loss, spike)
    width = spike.last - spike.first + 1
    if len(jumps.found) > 1 or not spike.recovered or width > max(3, AT_ONCE * len(jumps.loss)):
        return None
    at = jumps.step(spike)
    return Evidence(
        f"the jump at {jumps.run.step_name} {figure(at)} is the only one in {len(jumps.loss)} records and lasts "
        f"{width} of them",
        steps=(at,),
        values={"width_records": width},
    )


def recurring(jumps: Jumps) -> Evidence | None:
    """Say whether there are several jumps."""
    _need(jumps, LONG)
    if len(jumps.found) < 2:
        return None
    steps = tuple(jumps.step(spike) for spike in jumps.found)
    gaps = np.diff(steps)
    said = ", ".join(_said(spike, jumps.loss) for spike in jumps.found[:SHOWN])
    return Evidence(
        f"loss jumps {len(steps)} times, {figure(float(gaps.min()))} to {figure(float(gaps.max()))} "
        f"{jumps.run.step_name}s apart: {said}{', …' if len(steps) > SHOWN else ''}",
        steps=steps[:10],
        values={
            "count": len(steps),
            "closest": float(gaps.min()),
            "farthest": float(gaps.max()),
            "highest": jumps.worst.height,
            "widest_records": max(spike.last - spike.first + 1 for spike in jumps.found),
        },
    )


def growing(jumps: Jumps) -> Evidence | None:
    """Say whether the jumps become higher."""
    _need(jumps, LONG)
    if len(jumps.found) < GROWING:
        raise CannotTell(f"the loss jumps {len(jumps.found)} times; {GROWING} are needed")
    height = np.array([spike.height for spike in jumps.found])
    third = max(1, len(height) // 3)
    factor = float(height[-third:].mean() / height[:third].mean())
    if monotone(height) < RISING or factor < TIMES:
        return None
    first = jumps.step(jumps.found[0])
    return Evidence(
        f"of {len(height)} jumps of the loss, the first of them at {jumps.run.step_name} {figure(first)}, the last are "
        f"{figure(factor)} times as high as the first: {figure(float(height[0]))} to {figure(float(height[-1]))}",
        steps=(first,),
        values={"factor": factor, "count": len(height)},
    )


def back_at_once(jumps: Jumps) -> Evidence | None:
    """Say whether the loss is back from the highest jump from one record to the next."""
    _refuse_means(jumps)
    shape = _shape(jumps)
    if shape.fading:
        return None
    return _ending(jumps, shape, "from one record to the next")


def fades(jumps: Jumps) -> Evidence | None:
    """Say whether the loss comes back from the highest jump over several records."""
    shape = _shape(jumps)
    if shape.fading < FADES:
        _refuse_means(jumps)
        return None
    return _ending(jumps, shape, f"over {counted(shape.fading, 'record')}")


def leaves_mark(jumps: Jumps) -> Evidence | None:
    """Say whether the level behind the highest jump is above that before it."""
    shape, worst = _shape(jumps), jumps.worst
    if shape.mark is None:
        raise CannotTell("too few records follow the jump")
    if shape.mark < max(MARK_SIGMAS * shape.mark_error, MARK_SHARE * worst.height, MARK_OF_LEVEL * abs(worst.level)):
        return None
    at = jumps.step(worst)
    return Evidence(
        f"behind the jump at {jumps.run.step_name} {figure(at)} the loss stands {figure(shape.mark)} ± "
        f"{figure(shape.mark_error)} above the {figure(worst.level)} before it",
        steps=(at,),
        values={"mark": shape.mark, "error": shape.mark_error, "height": worst.height},
    )


def gradient_before(jumps: Jumps) -> Evidence | None:
    """Say whether the gradient norm had left its level before the highest jump."""
    at = jumps.step(jumps.worst)
    return gradient_left_level(jumps.run, at, f"loss jumps at {figure(at)}")


def rate_before(jumps: Jumps) -> Evidence | None:
    """Say whether the learning rate had risen at once before the highest jump."""
    if "learning_rate" not in jumps.run:
        raise CannotTell("not logged: learning_rate")
    at = jumps.step(jumps.worst)
    rise = rate_jump(jumps.run, at)
    if rise is None:
        return None
    return Evidence(
        f"learning_rate goes from {figure(rise.before)} to {figure(rise.after)} at {jumps.run.step_name} "
        f"{figure(rise.step)}; loss jumps at {figure(at)}",
        steps=(rise.step,),
        values={"before": rise.before, "after": rise.after},
    )


def same_place_of_pass(jumps: Jumps) -> Evidence | None:
    """Say whether the jumps come at one place of several passes over the data."""
    steps = np.array([jumps.step(spike) for spike in jumps.found])
    passes = passes_at(jumps.run, steps)
    if passes is None:
        raise CannotTell("the length of a pass over the data is not known")
    first, last = float(jumps.loss.step[0]), float(jumps.loss.step[-1])
    logged = passes_at(jumps.run, np.array([first, last]))
    apart = 0.0 if logged is None else float(np.ptp(logged)) * interval(jumps.loss) / max(last - first, 1.0)
    if len(steps) < LEAST_IN_PLACE or apart > SAME_PLACE:
        raise CannotTell(f"{counted(len(steps), 'jump')} in passes of too few records; {LEAST_IN_PLACE} are needed")
    place = np.angle(np.mean(np.exp(2j * np.pi * passes))) / (2 * np.pi) % 1
    off = np.abs((passes - place + 0.5) % 1 - 0.5)
    if float(off.max()) > SAME_PLACE or len(np.unique(np.round(passes - place))) < LEAST_IN_PLACE:
        return None
    if min(place, 1 - place) < EDGE:
        raise CannotTell("the jumps are where one pass ends and the next begins, where a batch may be a small one")
    return Evidence(
        f"the {len(steps)} jumps, the first at step {figure(float(steps[0]))}, all come {place:.2f} of a pass over the "
        f"data after its beginning, within {float(off.max()):.2f}",
        steps=tuple(float(step) for step in steps[:10]),
        values={"place": float(place), "count": len(steps)},
    )


def _need(jumps: Jumps, records: int) -> None:
    if len(jumps.loss) < records:
        raise CannotTell(f"loss has {counted(len(jumps.loss), 'finite value')} here; {records} are needed")


def _refuse_densities(loss: Series, spike: Spike) -> None:
    """Raise CannotTell if a loss has come below zero and a jump stays below where it was before.

    So do negative log-densities, and no cross-entropy. A density has no bound, and one row far out costs any amount:
    single records stand out of sound flows.
    """
    before = loss.value[: spike.first]
    if end_level(loss.value) < 0 and len(before) and loss.value[spike.peak] < before.max():
        raise CannotTell("the loss has come below zero, as a log-density's does: how far a jump goes says little")


def _shape(jumps: Jumps) -> Shape:
    """Return how the highest jump ends. Raises CannotTell where that does not show."""
    shape = shape_of(jumps.loss.value, jumps.worst)
    if shape is None:
        raise CannotTell("the jump does not come back before the log ends, or too few records come before it")
    return shape


def _refuse_means(jumps: Jumps) -> None:
    """Raise CannotTell where a record is a mean over many steps: what is over within it does not show."""
    if jumps.run.step_name != "step" or interval(jumps.loss) > APART:
        raise CannotTell("the records are too many steps apart to show that a jump is over at once")


def _ending(jumps: Jumps, shape: Shape, how: str) -> Evidence:
    worst = jumps.worst
    at = jumps.step(worst)
    return Evidence(
        f"the jump at {jumps.run.step_name} {figure(at)} stands above half of its height for "
        f"{counted(shape.high, 'record')} and comes back to the level before it {how}",
        steps=(at,),
        values={"records_high": shape.high, "records_fading": shape.fading, "height": worst.height},
    )


def _said(spike: Spike, loss: Series) -> str:
    width = spike.last - spike.first + 1
    return (
        f"at {figure(float(loss.step[spike.first]))} from {figure(spike.level)} to "
        f"{figure(float(loss.value[spike.peak]))} for {counted(width, 'record')}"
    )
