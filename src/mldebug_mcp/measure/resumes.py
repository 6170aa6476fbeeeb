"""Where one stretch of a run goes on from another, and what the loss, the gradient and the rate do there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.statistics import median, noise, positive, relative_noise

AROUND = 10
"""Records before a join that stand for the level there; of those after it, half as many. Chosen: a jump may recover."""
TREND = 40
"""Records before a join whose trend goes on behind it. Chosen: over fewer the noise makes a trend of its own."""
MANY = 20
"""Resumes that a log tells of, at most. Chosen: more are the run's habit, and no news."""
GAP = 5.0
"""Times the usual distance between records: so long a gap in the steps is a missing part of the log. Chosen: by
hand."""
STRETCHES = (5, 7, 10, 14, 20, 28, 40, 56, 80)
"""Records after a join that are tried for the length of a dip. Chosen: each is about 1.4 times the one before, so that
one is near any length."""
WIDE = 20
"""Records before a join whose level a dip is compared with. Chosen: by hand."""
BACK = 0.05
"""Of a pass, by which the epoch falls back, and that a whole pass is away. Chosen: counts are rounded by less."""
FIRST_LEFT = 0.05
"""Of the stretch before: a segment starts behind this first part of it. Chosen: else it is another run from the
beginning."""


@dataclass(frozen=True, slots=True)
class Dip:
    """A stretch after a resume in which the loss is lower than before, and from which it comes back.

    Args:
        records: Length of the stretch.
        low: Level of it.
        back: Level behind it.
        depth: By how much it lies below what comes before and behind, whichever is less.
        error: Standard error of the depth.
    """

    records: int
    low: float
    back: float
    depth: float
    error: float


@dataclass(frozen=True, slots=True)
class Join:
    """Where one stretch of a run goes on from another.

    Args:
        step: First step after the join.
        before, after: Level of the loss on either side.
        jump: What their difference has beyond the trend of either side.
        error: Standard error of their difference.
        replayed: Whether both sides stand at the same step, so that a fall means something too.
        told: Whether the log shows a resume, by its steps or its words; else it only has a gap.
        dip: The deepest dip that begins at the join, in units of its error; None where too few records follow.
        gradient: Level of the gradient norm after over that before, None where it is not logged on both sides.
        gradient_error: Standard error of the logarithm of that.
        rate: The learning rate after over that before; None where it is not logged on both sides.
        new_epoch: Whether an epoch ends there.
    """

    step: float
    before: float
    after: float
    jump: float
    error: float
    replayed: bool
    told: bool
    dip: Dip | None
    gradient: float | None
    gradient_error: float
    rate: float | None
    new_epoch: bool


@dataclass(frozen=True, slots=True)
class Restart:
    """Where the epoch that a log counts falls back in the middle of a pass, while the steps go on.

    Args:
        step: First step behind it.
        before, after: The epoch on either side.
    """

    step: float
    before: float
    after: float


def restart_of_data(run: Run) -> Restart | None:
    """Return where the data of a run start over in mid-pass; None where the log counts no parts of an epoch.

    Behind a whole pass that is a new stage of training, which may count its own.
    """
    epoch = run["epoch"].finite if "epoch" in run else None
    if epoch is None or run.step_name != "step" or len(epoch) < 2 * AROUND:
        return None
    each = median(np.diff(epoch.value))
    fell = np.flatnonzero(np.diff(epoch.value) < -BACK)
    for at in fell.tolist():
        before, after = float(epoch.value[at]), float(epoch.value[at + 1])
        to_whole = abs(before - round(before))
        if 0 < each < BACK and to_whole > max(2 * each, BACK) and median(epoch.value[at + 1 : at + 4]) < before:
            return Restart(float(epoch.step[at + 1]), before, after)
    return None


def joins_of(run: Run) -> tuple[Join, ...]:
    """Return the joins of a run with enough of the loss on either side, in order, those with a gap last."""
    if "loss" not in run:
        return ()
    return (*_between_segments(run), *_told(run), *_gaps(run))


def _between_segments(run: Run) -> Iterator[Join]:
    """Yield the joins between segments; one that starts where the first began is another run."""
    for old, new in pairwise(run.segments):
        first = new.series["loss"].finite.step[:1] if "loss" in new.series and "loss" in old.series else np.empty(0)
        if not len(first) or first[0] <= old.first_step + FIRST_LEFT * (old.last_step - old.first_step):
            continue
        at = float(first[0])
        join = _join(
            {name: one.where(one.step <= at) for name, one in old.series.items()}, dict(new.series), replayed=True
        )
        if join is not None:
            yield join


def _told(run: Run) -> Iterator[Join]:
    """Yield the joins that the log tells of in words, or by data that start over, where its steps just go on."""
    if len(run.segments) > 1 or len(run.resumes) > MANY:
        return
    restart = restart_of_data(run)
    steps = run.resumes if restart is None else sorted({*run.resumes, restart.step})
    for step in steps:
        if (join := _joined_at(run, step, told=True)) is not None:
            yield join


def _gaps(run: Run) -> Iterator[Join]:
    """Yield the joins across gaps in the steps; logs that grow sparser by design have many, and none is one."""
    loss = run["loss"]  # a stretch of NaN is not a gap
    gap = np.diff(loss.step)
    if len(gap) < 8 or run.step_name != "step":
        return
    wide = np.flatnonzero(gap > GAP * median(gap)) + 1
    if len(wide) > max(3, len(gap) // 50):
        return
    for at in wide.tolist():
        if (join := _joined_at(run, float(loss.step[at]), told=float(loss.step[at]) in run.resumes)) is not None:
            yield join


def _joined_at(run: Run, step: float, *, told: bool) -> Join | None:
    before = {name: one.where(one.step < step) for name, one in run.series.items()}
    after = {name: one.where(one.step >= step) for name, one in run.series.items()}
    return _join(before, after, replayed=False, told=told)


def _join(old: dict[str, Series], new: dict[str, Series], *, replayed: bool, told: bool = True) -> Join | None:
    before, after = old["loss"].finite, new["loss"].finite
    if len(before) < 3 or len(after) < 2:
        return None
    here, there = before.value[-AROUND:], after.value[: AROUND // 2]
    size = max(noise(before.value[-50:]), float(np.std(here)) / 2, noise(after.value[:50]) / 2)
    start, end = median(here), median(there)
    distance = median(after.step[: len(there)]) - median(before.step[-len(here) :])
    trends = [0.0, distance * _slope(before, slice(-TREND, None)), distance * _slope(after, slice(len(there)))]
    expected = min(max(end - start, min(trends)), max(trends))
    gradient, doubt = _gradient(old, new)
    return Join(
        step=float(after.step[0]),
        before=start,
        after=end,
        jump=end - start - expected,
        error=1.25 * size * float(np.sqrt(1 / len(here) + 1 / len(there))),
        replayed=replayed,
        told=told,
        dip=_dip(before.value[-WIDE:], after.value, size),
        gradient=gradient,
        gradient_error=doubt,
        rate=_rate(old, new),
        new_epoch=_ends_epoch(old, new),
    )


def _slope(loss: Series, part: slice) -> float:
    """Return the median change for a step: early in a run the loss falls from one window to the next without a jump."""
    step, value = loss.step[part], loss.value[part]
    half = len(value) // 2
    return median((value[-half:] - value[:half]) / np.maximum(step[-half:] - step[:half], 1e-12))


def _dip(before: Floats, after: Floats, size: float) -> Dip | None:
    found = [
        _dip_of(before, after[:length], after[length : length + max(5, length // 2)], size)
        for length in STRETCHES
        if len(after) >= length + 5
    ]
    return max(found, key=lambda one: one.depth / max(one.error, 1e-12), default=None)


def _dip_of(before: Floats, inside: Floats, behind: Floats, size: float) -> Dip:
    level, low, back = median(before), median(inside), median(behind)
    fewest = min(len(before), len(behind))
    error = 1.25 * size * float(np.sqrt(1 / len(inside) + 1 / fewest))  # a median's error is 1.25 times a mean's
    return Dip(len(inside), low, back, min(level, back) - low, error)


def _gradient(old: dict[str, Series], new: dict[str, Series]) -> tuple[float | None, float]:
    """Return the level of the gradient norm after a join over that before, and the error of its logarithm."""
    if Quantity.GRADIENT_NORM not in old or Quantity.GRADIENT_NORM not in new:
        return None, 0.0
    before, after = old[Quantity.GRADIENT_NORM].finite.value, new[Quantity.GRADIENT_NORM].finite.value
    here, there = before[-AROUND:], after[: AROUND // 2]
    if len(here) < 3 or len(there) < 2 or not positive(here) or not positive(there):
        return None, 0.0
    spread = max(relative_noise(here), float(np.std(np.log(here))))
    return median(there) / median(here), 1.25 * spread * float(np.sqrt(1 / len(here) + 1 / len(there)))


def _rate(old: dict[str, Series], new: dict[str, Series]) -> float | None:
    name = Quantity.LEARNING_RATE
    before, after = (side[name].finite.value if name in side else np.empty(0) for side in (old, new))
    return float(after[0] / before[-1]) if len(before) and len(after) and before[-1] > 0 else None


def _ends_epoch(old: dict[str, Series], new: dict[str, Series]) -> bool:
    """Say whether an epoch ends at a join; a record that ends an epoch belongs to it."""
    before, after = (side["epoch"].finite.value if "epoch" in side else np.empty(0) for side in (old, new))
    return bool(len(before) and len(after) and np.ceil(round(after[0], 6)) > np.ceil(round(before[-1], 6)))
