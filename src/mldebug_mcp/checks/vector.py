"""A run as plain numbers, by name: how each of its curves lies, before anybody asks what is wrong with it.

No number has a threshold or an expectation. Each is the same on another step axis, with other columns and, as
far as that can be, at another interval of logging: places are shares of the records, heights are taken against the
curve's own start, level or noise. A height itself counts only of what has a scale of its own, such as a loss in nats or
an accuracy: gradient norms, rates, times and memory are other ones in a large model. What a run did not log has no
entry.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np

from mldebug_mcp.checks.curve import MAD_TO_STD, sample
from mldebug_mcp.checks.progress import uniform_loss
from mldebug_mcp.core.arrays import median
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.quantities import COUNTERS, UTILISATIONS
from mldebug_mcp.logs.run import Run, Series

MAX_CURVE_VALUES = 4096
"""Values of a curve that its numbers are taken from, evenly spaced. Chosen: a median of so many is off by 2 % of the
noise."""
TENTH = 10
"""Part of the records that stands for an end. Chosen: by hand."""
LEAST_OF_COURSE = 4
"""Records from which a curve has a course. Chosen: by hand."""
LEAST_OF_SHAPE = 8
"""Records from which a curve has a memory and tails. Chosen: by hand."""
MOST_PARTS = 1000
"""Parts of a model whose gradients are compared. Chosen: more than any model is logged by."""
MIN_RELATIVE_CHANGE = 1e-3
"""Change, of the level, below which a record repeats the one before. Chosen: what rounding to four digits hides."""
STANDS_OUT = 6.0
"""Noises that the largest rise has to come to before its place says anything. Chosen: one in 10^5 of changes between
normal records."""
SMALL = 1e-12
"""What keeps ratios finite. Chosen: below all that is logged."""
AXES = COUNTERS | {
    Quantity.TIMESTAMP,
    Quantity.ELAPSED,
    Quantity.TIME_LEFT,
    Quantity.RUNTIME,
    Quantity.TOKENS_SEEN,
    Quantity.SAMPLES_SEEN,
}
"""What counts on, whatever is learnt."""
COMPARED = (
    Quantity.LOSS,
    Quantity.ACCURACY,
    Quantity.TOKEN_ACCURACY,
    Quantity.PERPLEXITY,
    Quantity.REWARD,
)
"""What is measured in training and at evaluation alike."""
OWN_SCALE = (
    frozenset(quantity for quantity in Quantity if quantity.is_share)
    | {
        Quantity.LOSS,
        Quantity.PERPLEXITY,
        Quantity.KL,
        Quantity.APPROXIMATE_KL,
        Quantity.POLICY_RATIO,
        Quantity.EXPLAINED_VARIANCE,
        Quantity.UPDATE_RATIO,
        Quantity.EXPLORATION,
        Quantity.R2,
        Quantity.CORRELATION,
    }
) - UTILISATIONS
"""What has the same heights in a small model and in a large one."""
HEIGHTS = frozenset({"first", "least", "most", "early", "middle", "last"})
OF_A_GUESS = ("first", "last", "least")


def vector_of(run: Run) -> dict[str, float]:
    """Return the numbers of a run by what they are, such as "eval loss: last / first"; all of them are finite."""
    with np.errstate(over="ignore", invalid="ignore"):  # a loss of 1e308 has no square
        numbers = {name: float(number) for name, number in _of(run).items()}
    return {name: number for name, number in numbers.items() if math.isfinite(number)}


def _of(run: Run) -> dict[str, float]:
    curves = _curves(run)
    numbers: dict[str, float] = {}
    for (quantity, name), curve in curves.items():
        left_out = frozenset() if quantity in OWN_SCALE else HEIGHTS
        numbers |= {f"{name}: {what}": number for what, number in _numbers(curve.value) if what not in left_out}
    for quantity in COMPARED:
        train, held = curves.get((quantity, str(quantity))), curves.get((quantity, f"eval {quantity}"))
        if train is not None and held is not None:
            numbers |= {f"{quantity}, eval against train: {what}": gap for what, gap in _gaps(train.finite, held)}
    if guess := uniform_loss(run):
        names = [f"{loss}: {what}" for loss in ("loss", "eval loss") for what in OF_A_GUESS]
        numbers |= {f"{name} / a guess": numbers[name] / guess for name in names if name in numbers}
    return numbers | dict(_of_the_run(run))


def _curves(run: Run) -> Mapping[tuple[Quantity, str], Series]:
    """Return the first series of each quantity as a whole, in its units, by what it is and "loss" or "eval loss"."""
    found: dict[tuple[Quantity, str], Series] = {}
    for series in run.series.values():
        role = series.role
        if role is None or not role.is_whole or role.quantity in AXES or not len(series):
            continue
        if role.quantity.is_memory:
            continue  # that it is logged says nothing of training: whether it grows is asked by itself
        name = f"eval {role.quantity}" if role.is_evaluation else str(role.quantity)
        found.setdefault((role.quantity, name), series if series.name == role.name else series.times(role.factor))
    return found


def _numbers(logged: Floats) -> Iterator[tuple[str, float]]:
    finite = np.isfinite(logged)
    yield "share not finite", 1 - float(finite.mean())
    value = logged if finite.all() else logged[finite]
    if not len(value):
        return
    first = float(value[0])
    yield "first", first
    if len(value) < LEAST_OF_COURSE:
        return
    least, most, start = float(value.min()), float(value.max()), abs(first) + SMALL
    yield from (("least", least), ("most", most), ("least / first", least / start), ("most / first", most / start))
    yield "place of its least", float(np.argmin(value)) / len(value)
    yield "place of its most", float(np.argmax(value)) / len(value)
    yield from _levels(value, start, least)
    yield from _moves(sample(value, MAX_CURVE_VALUES), start)


def _levels(value: Floats, start: float, least: float) -> Iterator[tuple[str, float]]:
    count = len(value)
    width = max(1, count // TENTH)
    early, quarter, middle, last = (median(value[at : at + width]) for at in (0, count // 4, count // 2, count - width))
    yield from (("early", early), ("middle", middle), ("last", last))
    yield from (
        ("quarter / first", quarter / start),
        ("middle / first", middle / start),
        ("last / first", last / start),
    )
    yield "last above least / least", (last - least) / (abs(least) + SMALL)
    yield "late change / first", (last - middle) / start
    yield "fall / early", (early - last) / (abs(early) + SMALL)


def _moves(value: Floats, start: float) -> Iterator[tuple[str, float]]:
    """Yield how a curve goes from record to record, against the noise between them."""
    count, change = len(value), np.diff(value)
    level = abs(median(value)) + SMALL
    noise = MAD_TO_STD * median(np.abs(change - median(change))) / math.sqrt(2) + SMALL
    yield "noise / level", noise / level
    yield "records that rise", float((change > 0).mean())
    yield "records that stand still", float((np.abs(change) <= MIN_RELATIVE_CHANGE * level).mean())
    yield "largest rise / first", float(change.max()) / start
    width = max(1, count // TENTH)
    early, middle, last = (median(value[at : at + width]) for at in (0, count // 2, count - width))
    if noise > MIN_RELATIVE_CHANGE * MIN_RELATIVE_CHANGE * level:
        yield "largest rise / noise", float(change.max()) / noise
        if change.max() > STANDS_OUT * noise:
            yield "place of its largest rise", float(np.argmax(change)) / count
        yield "largest fall / noise", -float(change.min()) / noise
        yield "range / noise", float(np.ptp(value)) / noise
        yield "change / noise", (last - early) / noise
        yield "late change / noise", (last - middle) / noise
    if count < LEAST_OF_SHAPE:
        return
    yield "late noise / level", median(np.abs(np.diff(value[count // 2 :]))) / (abs(last) + SMALL)
    place = np.arange(count) - (count - 1) / 2
    left = value - value.mean() - place * (float(place @ value) / float(place @ place))
    spread = float(left @ left)
    rounding, variance = MIN_RELATIVE_CHANGE * MIN_RELATIVE_CHANGE * level, spread / count
    if spread > rounding * rounding * count:  # a product of floats can be infinite, where a power raises OverflowError
        yield "memory", float(left[:-1] @ left[1:]) / spread
        yield "tails", float((left**4).mean()) / (variance * variance)


def _gaps(train: Series, held: Series) -> Iterator[tuple[str, float]]:
    """Yield how far evaluation lies from training at the same steps, of where training began."""
    at = held.finite
    if len(train) < 2 or not len(at):
        return
    beside = np.interp(at.step, train.step, train.value)
    gap, start = at.value - beside, abs(float(train.value[0])) + SMALL
    yield from (("first gap", float(gap[0]) / start), ("last gap", float(gap[-1]) / start))
    yield from (("least gap", float(gap.min()) / start), ("late trend", float(gap[-1] - gap[len(gap) // 2]) / start))
    yield "last ratio", float(at.value[-1]) / (abs(float(beside[-1])) + SMALL)


def _of_the_run(run: Run) -> Iterator[tuple[str, float]]:
    yield f"a run of {run.kind}", 1.0
    yield "errors that end it", float(len(run.fatal))
    parts = (series for series in run.series.values() if _is_of_a_part(series) and len(series.finite))
    levels = np.array([median(part.finite.value) for part in islice(parts, MOST_PARTS)])
    if len(levels) > 1 and levels.max() > 0:
        yield "gradients of parts: least / most", math.log10(levels.min() / levels.max() + 1e-30)
        yield "gradients of parts: share of zeros", float((levels == 0).mean())
    if (planned := run.setting("max_steps")) and run.step_name == "step":
        yield "part of the plan", run.last_step / planned
    if "epoch" in run and len(run["epoch"].finite):
        yield "passes", float(run["epoch"].finite.value.max())


def _is_of_a_part(series: Series) -> bool:
    role = series.role
    return role is not None and role.quantity is Quantity.GRADIENT_NORM and role.is_level and not role.is_whole
