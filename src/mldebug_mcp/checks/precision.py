"""Numbers that are not finite, the loss scaler of half precision, and the precision in which a run computes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from mldebug_mcp.checks.gradients import gradient_norm
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.metrics import canonical, is_part_of_loss, is_training_loss
from mldebug_mcp.logs.run import Run, Series

# Numbers that are not finite: how many, scattered or for good, what came before, and what stays finite beside them.


LAST = 3
"""Records before the first number that is not finite in which a climb towards it is looked for, and as many after.
Chosen: a run that goes off takes some records."""
LEVEL = 10
"""Values that make a level, as their median, where there are twice as many. Chosen: one lucky batch does not."""
STEEP = 1e3
"""Times that each of fewer records stands above the one before. Chosen: no batch takes a loss up by powers of ten."""
PARTS = 4
"""Stretches from the first such number to the end of the log, whose shares of them compare. Chosen: a trend."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A series that is not finite in some records.

    Args:
        series: The series.
        bad: Where it is not finite, shape (n,).
        at: Index of the first such record.
    """

    series: Series
    bad: NDArray[np.bool_]
    at: int

    @property
    def step(self) -> float:
        """The step of the first record that is not finite."""
        return float(self.series.step[self.at])

    @property
    def kind(self) -> str:
        """NaN or infinite, as the first of them is."""
        return "NaN" if np.isnan(self.series.value[self.at]) else "infinite"

    @property
    def count(self) -> int:
        """How many records are not finite."""
        return int(self.bad.sum())

    @property
    def for_good(self) -> bool:
        """Whether no finite record follows."""
        return self.count == len(self.bad) - self.at


@dataclass(frozen=True, slots=True)
class Climb:
    """How a curve goes up to where it is lost.

    Args:
        level: The lowest level of the finite values up to the last few.
        reach: How far single values go where that level is: no more is noise.
        last: The highest of the last few.
        since: The step of the first of them.
    """

    level: float
    reach: float
    last: float
    since: float


@dataclass(frozen=True, slots=True)
class Beside:
    """Parts of the loss in the records where the whole is not finite.

    Args:
        finite: Those that are finite in all of them.
        gone: Those that are finite in none.
    """

    finite: tuple[str, ...]
    gone: tuple[str, ...]


def lost(series: Series) -> Lost | None:
    """Return where a series is not finite, None if it always is."""
    bad = ~np.isfinite(series.value)
    return Lost(series, bad, int(np.argmax(bad))) if bad.any() else None


OF_EPISODES = frozenset({Quantity.REWARD, Quantity.EPISODE_LENGTH})
"""Quantities that agents log as means over the episodes that have ended."""


def training_losses(run: Run) -> list[Series]:
    """Return the total loss by its names, else its parts, else all of a log in which nothing is ever finite.

    Means over episodes are no such log: they are NaN until one has ended.
    """
    totals = [series for name, series in run.series.items() if canonical(name) == "loss"]
    parts = totals or [series for name, series in run.series.items() if is_training_loss(name)]
    if parts:
        return parts
    measured = [series for series in run.series.values() if not np.array_equal(series.value, np.round(series.value))]
    of_episodes = any(series.role is not None and series.role.quantity in OF_EPISODES for series in measured)
    never = len(measured) > 1 and not of_episodes and not any(np.isfinite(series.value).any() for series in measured)
    return measured if never else []


def first_lost(several: list[Series]) -> Lost | None:
    """Return the series that is the first not to be finite, None if all are finite throughout."""
    return min(
        (place for series in several if (place := lost(series)) is not None), key=lambda first: first.step, default=None
    )


def climb(loss: Lost) -> Climb | None:
    """Return how a loss goes up before it is lost, None if too few finite records come before.

    Four are enough, or two where each is powers of ten above the one before.
    """
    before = loss.series.value[: loss.at]
    steep = 2 <= len(before) <= LAST and bool(np.all(before[1:] > STEEP * before[:-1]))
    if len(before) <= LAST and not steep:
        return None
    earlier = before[: max(1, len(before) - LAST)]
    level = reach = float(earlier.min())
    if len(earlier) >= 2 * LEVEL:
        levels = np.median(sliding_window_view(earlier, LEVEL), axis=1)
        lowest = int(levels.argmin())
        level, reach = float(levels[lowest]), float(earlier[max(0, lowest - LEVEL) : lowest + 2 * LEVEL].max())
    return Climb(level, reach, float(before[-LAST:].max()), float(loss.series.step[max(0, loss.at - LAST)]))


def returns(loss: Lost) -> tuple[float, float] | None:
    """Return the level just before the first number that is not finite, and that of the last finite ones after it.

    None if none is finite before, or fewer than `LAST` after.
    """
    value, finite = loss.series.value, ~loss.bad
    before, after = value[: loss.at][finite[: loss.at]], value[loss.at :][finite[loss.at :]]
    if not len(before) or len(after) < LAST:
        return None
    return median(before[-LAST:]), median(after[-LAST:])


MIN_RECORDS_OUTLIVED = 3
"""Records without a finite loss whose gradient norm is finite. Chosen: from there on it is not a coincidence."""


def outlived(run: Run) -> tuple[Lost, Series] | None:
    """Return a loss that is lost for good and the gradient norms of its records, which are all finite and above zero.

    Weights that are not finite have no such gradient: the model goes on, and it is the loss in the log that does not.
    Transformers 5.24.0 sums losses between two records, and takes the sum off itself: NaN stays in it.
    """
    loss = first_lost(training_losses(run))
    norm = gradient_norm(run)
    if loss is None or not loss.for_good or norm is None:
        return None
    norms = norm.where(np.isin(norm.step, loss.series.step[loss.at :]))
    # The record in which the loss is lost may have no gradient at all: that of a batch without a label is zero.
    later = norms.where(norms.step > loss.step)
    sound = len(later) >= MIN_RECORDS_OUTLIVED and bool(np.isfinite(norms.value).all() and (later.value > 0).all())
    return (loss, norms) if sound else None


def shares(loss: Lost) -> tuple[float, ...]:
    """Return the share of numbers that are not finite in each of `PARTS` stretches from the first of them on."""
    after = loss.bad[loss.at :]
    if len(after) < 2 * PARTS:
        return ()
    edges = np.linspace(0, len(after), PARTS + 1).astype(int)
    return tuple(float(after[first:last].mean()) for first, last in pairwise(edges))


def beside(run: Run, loss: Lost) -> Beside:
    """Return which parts of the loss are finite where it is not, and which are lost with it."""
    steps = loss.series.step[loss.bad]
    parts = [series for name, series in run.series.items() if name != loss.series.name and is_part_of_loss(name)]
    there = [(part.name, np.isfinite(part.value[np.isin(part.step, steps)])) for part in parts]
    return Beside(
        tuple(name for name, finite in there if len(finite) and finite.all()),
        tuple(name for name, finite in there if len(finite) and not finite.any()),
    )


# The loss scaler of half precision: which steps it skips, and how far its scale comes down.


HALVED = 0.75
"""A scale below this share of the one before was halved. Chosen: between a half and the same."""
LEAST_HEALTHY = 1.0
"""The least scale from which training can go on. Source: opt_175b_logbook."""
OCTAVES = 6
"""Halvings, net, that are a fall. Chosen: a healthy scaler goes up and down by one or two."""
BELOW_HEALTHY = 2
"""Halvings below the least healthy scale that are a fall. Chosen: there a healthy scaler never is."""
DESCENT = 20
"""Records in which a scaler comes down from its start. Chosen: torch's 2 ** 16 takes sixteen."""
DESCENT_SHARE = 0.05
"""The same as a share of the log. Chosen: by hand."""
AGAIN = 3
"""Overflows at the smallest scale that are more than probing. Chosen: one or two may come by chance."""


@dataclass(frozen=True, slots=True)
class Skips:
    """Steps that were skipped for overflow.

    Args:
        count: Skipped steps since the record before, by record.
        steps: Steps since the record before, (records,).
        probing: Records at the start in which the scaler looks for its scale.
    """

    count: Series
    steps: Floats
    probing: int

    @property
    def late(self) -> Floats:
        """Skipped steps behind the start, (records,)."""
        return np.where(np.arange(len(self.count)) >= self.probing, self.count.value, 0.0)

    @property
    def share(self) -> float:
        """Share of all steps that were skipped behind the start."""
        return float(self.late.sum() / max(self.steps.sum(), 1.0))

    @property
    def longest(self) -> int:
        """The most steps that were skipped on end behind the start."""
        whole = self.late >= self.steps
        ends = np.cumsum(np.where(whole, self.late, 0.0))
        return int((ends - np.maximum.accumulate(np.where(whole, 0.0, ends))).max(initial=0.0))


@dataclass(frozen=True, slots=True)
class Descent:
    """A fall of the loss scale.

    Args:
        top, low: Indices of the last record before it, and of its end.
        halvings: How far it goes.
    """

    top: int
    low: int
    halvings: float


def skips_of(run: Run) -> Skips | None:
    """Return the steps that were skipped, by the counter of the log, its messages or halvings; None if it has none."""
    count = _counted(run)
    if count is None or not len(count):
        return None
    apart = np.diff(count.step)
    steps = np.ones(len(count))
    if run.step_name == "step" and len(apart):
        steps[1:] = np.maximum(apart, 1.0)
        steps[0] = max(1.0, min(float(count.step[0]), median(apart)))
    skipped = Series(count.name, count.step, np.clip(count.value, 0.0, steps))
    return Skips(skipped, steps, _probing(run, skipped))


def are_skipped(run: Run, steps: Floats) -> bool:
    """Say whether a loss scaler skipped the steps: its count or its scale tells so in the record or the next."""
    skips = skips_of(run)
    if skips is None:
        return False
    at = skips.count.step[skips.count.value > 0]
    apart = median(np.diff(run["grad_norm"].step))
    return len(at) > 0 and all(float(np.abs(at - step).min()) <= apart for step in steps)


def _counted(run: Run) -> Series | None:
    if "skipped_iterations" in run and len(count := run["skipped_iterations"].finite):
        rising = len(count) > 2 and bool(np.all(np.diff(count.value) >= 0)) and count.value[-1] > 0
        return Series(count.name, count.step, np.diff(count.value, prepend=0.0) if rising else count.value)
    if "overflow" in run and "loss" in run:  # messages of skipped steps, between the records of those that were not
        skipped = run["overflow"].where(run["overflow"].value > 0)
        step = np.union1d(skipped.step, run["loss"].step)
        return Series(skipped.name, step, np.isin(step, skipped.step).astype(np.float64))
    if "loss_scale" in run and len(scale := run["loss_scale"].finite) > 1:
        halved = scale.value[1:] < HALVED * scale.value[:-1]
        return Series(scale.name, scale.step, np.concatenate([[0.0], halved.astype(np.float64)]))
    return None


def _probing(run: Run, count: Series) -> int:
    """Return how many records belong to the descent from where the scaler began."""
    few = min(DESCENT, len(count) // 2)
    if count.step[0] > DESCENT:
        return few
    skipped = count.value > 0  # before the first halving there is none
    descent = len(skipped) if skipped[1:].all() else 1 + int(np.argmin(skipped[1:]))
    scale = run.series.get("loss_scale")
    below = np.empty(0) if scale is None else scale.step[scale.value < LEAST_HEALTHY]
    healthy = int(np.searchsorted(count.step, below[0])) if len(below) else len(skipped)
    return max(few, min(descent, healthy))


def descent_of(scale: Series, *, skips_at_end: bool) -> Descent | None:
    """Return the fall of a scale that ends below 1, at a 64th, or where steps are skipped even there, or is far.

    One that is below 1 from the first record on has to fall further.

    Args:
        scale: The loss scale, above zero.
        skips_at_end: Whether a step is skipped at its last record.
    """
    value, log = scale.value, np.log2(scale.value)
    sinks = log[-1] <= -OCTAVES and float(np.ptp(log)) >= OCTAVES and log[-1] < log[0]
    least = bool(value[-1] < LEAST_HEALTHY or (skips_at_end and value[-1] == LEAST_HEALTHY))
    falls = value[0] > LEAST_HEALTHY or log[0] - log[-1] >= BELOW_HEALTHY
    if (least and falls) or sinks:
        low = len(log) - 1
        top = int(np.flatnonzero(log == log.max())[-1])
        return Descent(top, low, float(log[top] - log[low]))
    start = min(len(log) - 1, max(DESCENT, int(DESCENT_SHARE * len(log))))
    fall = np.maximum.accumulate(log[start:]) - log[start:]
    if float(fall.max()) < OCTAVES:
        return None
    low = start + int(np.argmax(fall))
    top = start + int(np.flatnonzero(log[start : low + 1] == log[start : low + 1].max())[-1])
    return Descent(top, low, float(log[top] - log[low]))


# In what precision a run computes, as its settings or the loss scaler of half precision tell, and what is lost.


MIN_LOST_GRADIENTS = 3
"""Records with a lost gradient behind the scaler's descent. Chosen: by hand."""
MIN_SHARE_OF_LOST_GRADIENTS = 0.02
"""Share of the records with a lost gradient. Chosen: scalers lose one in a hundred."""


@dataclass(frozen=True, slots=True)
class Overflow:
    """A loss or a gradient norm that is not finite beyond a scaler's search for its scale.

    Args:
        series: Which of them, the first to be lost.
        step: The first step at which it is not finite.
        lost: Records in which it is not.
        records: Records in all.
    """

    series: str
    step: float
    lost: int
    records: int


def in_half_precision(run: Run) -> bool | None:
    """Say whether a run computes in fp16: as its settings say, else as a scale of its loss shows; None is not known.

    Only fp16 needs its loss scaled. A scale of 1 throughout is that of a scaler which is switched off.
    """
    precision = run.facts.precision
    if precision is not None:
        return precision == "fp16"
    scale = next(run.with_role(Quantity.LOSS_SCALE, phase="train"), None)
    if scale is None or not len(scale.finite) or float(np.max(scale.finite.value)) <= 1:
        return None
    return bool(np.all(np.mod(np.log2(np.maximum(scale.finite.value, 1e-30)), 1) == 0)) or None


def overflow(run: Run) -> Overflow | None:
    """Return where numbers are lost: the training loss in any record, or gradients again and again."""
    loss = first_lost(training_losses(run))
    norm = gradient_norm(run)
    of_norm = None if norm is None else _again_and_again(norm)
    of_loss = None if loss is None else Overflow(loss.series.name, loss.step, loss.count, len(loss.bad))
    return min((found for found in (of_norm, of_loss) if found is not None), key=lambda found: found.step, default=None)


def _again_and_again(norm: Series) -> Overflow | None:
    bad = ~np.isfinite(norm.value)
    later = int(bad.sum()) - min(DESCENT, int(bad[:DESCENT].sum()))
    if later < max(MIN_LOST_GRADIENTS, MIN_SHARE_OF_LOST_GRADIENTS * len(bad)):
        return None
    return Overflow(norm.name, float(norm.step[int(np.argmax(bad))]), int(bad.sum()), len(bad))
