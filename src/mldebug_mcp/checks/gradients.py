"""The gradient norm, and in which precision a run computes.

The norm is taken against what labels alone give, pinned at one value, and by parts of the model. Behind it stand
numbers that are not finite and the loss scaler of half precision.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.checks.check import CannotTell
from mldebug_mcp.checks.curve import (
    LEAST_FOR_LEVEL,
    Spike,
    baseline,
    end_level,
    finite_of,
    mad,
    monotone,
    noise,
    spikes,
    start_level,
)
from mldebug_mcp.core.arrays import median, median_gap
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.metrics import canonical, is_training_loss
from mldebug_mcp.logs.run import Run, Series

MAX_NORM_DIFFERENCE = 2e-3
"""Norms this near to each other are one value. Chosen: clipping divides by the norm plus 1e-6, and logs round."""
LEAST_LAYERS = 4
"""Layers whose order can be judged. Chosen: four are in order by chance once in twelve."""
MIN_NORM_JUMP_RATIO = 10.0
"""Times its recent level that a norm jumps to: 0.1 to 10 are healthy, 100 unstable. Source: axolotl_stability."""
MIN_NORM_JUMP_SIGMAS = 8.0
"""Standard deviations of the logarithm that a norm jumps, beyond tails of small batches. Source: axolotl_stability."""
NORM_WINDOWS = 20
"""Windows that the norms make; one of them is compared with a jump behind it. Chosen: by hand."""
MAX_WINDOW_NORMS = 50
"""Norms of such a window at most. Chosen: by hand."""
MIN_WINDOW_NORMS = 6
"""Norms of such a window at least. Chosen: six show a level."""
MIN_LOSS_MOVE_NOISES = 5.0
"""Times its noise by which a loss has moved. Chosen: by hand."""
SMALL_LOSS = 0.2
"""Share of its start by which a loss is learnt, or explains a small norm. Chosen: healthy norms fall as the loss."""
_FIRST = frozenset({"first", "input", "in", "bottom", "embed", "embedding", "embeddings", "wte", "stem"})
LAST_LAYERS = frozenset({"last", "output", "out", "top", "head", "classifier", "logits"})
"""Words that name the two ends of a model."""
_RANK = regex(r"(?:rank|gpu|node|worker|device|host) ?\d+", re.IGNORECASE)
"""A process, whose gradient is that of the whole model."""
_OF_GRADIENT = regex(
    r"(?:.*/)?(?:(?P<log>log_?10)[ _(|‖]*|[|‖]+|(?=grad|g_?norm|g_t|[d∂]\w{1,4}/[d∂]|[d∂]h@))"
    r"(?:grad(?:ient)?s?|g_?norms?|g|(?:[d∂]\w{1,4}/)?[d∂][a-z]{1,2})[|‖) _/.@\[]+(?P<part>[a-z]*[ _.]?\d+[\])]?)",
    re.IGNORECASE,
)
"""The size of a gradient at a layer or a place of a row, or its decimal logarithm: `log10|dx| t30`."""


@dataclass(frozen=True, slots=True)
class Part:
    """The norm of the gradient of a part of the model.

    Args:
        name: The part, as its metric is called.
        family: The name without its number: parts of one family differ in depth alone.
        depth: The number in the name, None where there is none.
        level: Median of the norms.
        zeros: Share of the norms that are exactly zero.
        records: Norms.
    """

    name: str
    family: str
    depth: int | None
    level: float
    zeros: float
    records: int


def gradient_norm(run: Run) -> Series | None:
    """Return the gradient norm of the whole model, None if it is not logged."""
    return next(run.with_role(Quantity.GRADIENT_NORM, phase="train"), None)


def label_noise_norm(run: Run) -> float | None:
    """Return the gradient norm that the labels of a batch alone give the bias of the last layer of a classifier.

    With answers p and labels y it is the mean of p - y over the batch. At a guess among C classes its expectation is
    sqrt((1 - 1/C) / B) for B rows, since labels are drawn at random; what other weights get comes on top. None where
    classes or rows are not known, or a batch is much of the data.
    """
    classes, batch, rows = run.facts.classes, run.facts.effective_batch, run.setting("train_rows")
    if classes is None or batch is None or classes < 2 or batch < 1 or (rows is not None and 2 * batch > rows):
        return None
    return math.sqrt((1 - 1 / classes) / batch)


def loss_moved(run: Run) -> float:
    """Return to which share of its start the loss has come, 1 where it has not moved by more than its noise."""
    loss = finite_of(run, "loss").value
    if len(loss) < LEAST_FOR_LEVEL or (start := start_level(loss)) == 0:
        return 1.0
    end = end_level(loss)
    return abs(end / start) if abs(end - start) > MIN_LOSS_MOVE_NOISES * noise(loss) else 1.0


def refuse_uncomputed(run: Run, norm: Series, what: str) -> None:
    """Raise CannotTell if the loss is learnt although no norm is above zero, or finite."""
    if abs(1 - loss_moved(run)) > SMALL_LOSS:
        raise CannotTell(f"{norm.name} is {what} in all records, yet the loss is learnt: the norm is not computed")


LEAST_INFINITE = 10
"""Infinite norms at the end, one after the other, that are no search for a loss scale. Chosen: by hand."""


def moved_while_infinite(run: Run) -> float | None:
    """Return by how much the loss moves where all norms up to the last are infinite, 0 within its noise.

    None where the last norms are not infinite, or too few losses stand there.
    """
    if "loss" not in run or "grad_norm" not in run:
        return None
    norm = run["grad_norm"]
    since = len(norm) - int(np.argmin(np.append(np.isinf(norm.value[::-1]), False)))
    if len(norm) - since < LEAST_INFINITE:
        return None
    loss = run["loss"].finite
    later = loss.where(loss.step >= norm.step[since]).value
    if len(later) < LEAST_INFINITE:
        return None
    moved = end_level(later) - start_level(later)
    return moved if abs(moved) > MIN_LOSS_MOVE_NOISES * noise(later) else 0.0


def pinned(norm: Series) -> tuple[float, float, float] | None:
    """Return the value above which no norm goes and at which most stand, None if none is above zero.

    With it stand the share of the records that have it, and the step of the first of them.
    """
    highest = float(norm.value.max(initial=0.0))
    if highest <= 0:
        return None
    at = norm.value >= (1 - MAX_NORM_DIFFERENCE) * highest
    return highest, float(at.mean()), float(norm.step[int(np.argmax(at))])


def parts_of(run: Run, records: int | None = None) -> tuple[Part, ...]:
    """Return the parts of the model whose gradient norms are logged, in the order of their names.

    Their levels are those of all records, or of the first ones where a number of them is given.
    """
    found = {}
    for series, sizes in _sizes(run):
        values = sizes[:records]
        role = series.role
        if not len(values) or (role is not None and role.is_whole and not role.namespace):
            continue
        name = _place_of(series) if role is None else role.part or role.namespace
        if _RANK.fullmatch(name):
            continue
        number = re.search(r"\d+", name)
        found[series.name] = Part(
            name=series.logged_as or series.name,
            family=re.sub(r"\d+", "#", series.logged_as or series.name),
            depth=int(number[0]) if number else None,
            level=median(values),
            zeros=float((values == 0).mean()),
            records=len(values),
        )
    return tuple(found[name] for name in sorted(found))


def _sizes(run: Run) -> Iterator[tuple[Series, Floats]]:
    """Yield columns of gradient norms, and those without a role that are by their sign, with the sizes they hold."""
    norms = run.with_role(Quantity.GRADIENT_NORM, phase="train", parts=True)
    by_sign = (each for name, each in run.series.items() if each.role is None and _OF_GRADIENT.fullmatch(name))
    for series in (*norms, *by_sign):
        name, values = series.logged_as or series.name, series.finite.value
        match = _OF_GRADIENT.fullmatch(name) if "log" in name.lower() else None
        yield series, np.power(10.0, values) if match is not None and match["log"] else values


def _place_of(series: Series) -> str:
    match = _OF_GRADIENT.fullmatch(series.name)
    return match["part"] if match is not None else series.name


def layers_of(parts: Sequence[Part]) -> list[Part]:
    """Return the largest family of layers with a gradient, the first layer first."""
    families: dict[str, list[Part]] = defaultdict(list)
    for part in parts:
        if part.depth is not None and part.level > 0:
            families[part.family].append(part)
    largest = max(families, key=lambda family: len(families[family]), default="")
    return sorted(families[largest], key=lambda part: part.depth or 0)


def ends_of(parts: Sequence[Part]) -> tuple[Part, Part, int, float] | None:
    """Return the ends of the largest family of layers, else those that are named as the ends of the model.

    With them stand the number of layers, and the rank correlation of their levels with depth. None if there are too few
    layers and not both ends.
    """
    layers = layers_of(parts)
    if len(layers) < LEAST_LAYERS:
        return _between_ends(parts)
    order = monotone(np.array([part.level for part in layers]))
    return layers[0], layers[-1], len(layers), order


def _between_ends(parts: Sequence[Part]) -> tuple[Part, Part, int, float] | None:
    """Return the parts that are named as the first and the last of the model, in order as two always are."""
    first, last = (
        next((part for part in parts if part.level > 0 and words & set(re.findall("[a-z]+", part.name.lower()))), None)
        for words in (_FIRST, LAST_LAYERS)
    )
    if first is None or last is None or first is last:
        return None
    return first, last, 2, 1.0 if last.level > first.level else -1.0


def jumps_of(norm: Series) -> list[Spike]:
    """Return where the logarithm of the norm stands far above its level, in units of its own scatter."""
    log = np.log(norm.value)
    width = int(np.clip(len(log) // NORM_WINDOWS, MIN_WINDOW_NORMS, MAX_WINDOW_NORMS))
    base = baseline(log, width)
    overall = mad(base.rest(log))
    spread = np.clip(base.spread, overall / 2, overall)  # a window may happen to be loud or quiet
    threshold = np.maximum(MIN_NORM_JUMP_SIGMAS * spread, math.log(MIN_NORM_JUMP_RATIO))
    return spikes(log, width, threshold, base, skip=width) if base.is_exceeded(log, threshold) else []


# Numbers that are not finite: how many, scattered or for good, what came before, and what stays finite beside them.


CLIMB_WINDOW_RECORDS = 3
"""Records before the first number that is not finite in which a climb towards it is looked for, and as many after.
Chosen: a run that goes off takes some records."""
NOT_FINITE_STRETCHES = 4
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


def returns(loss: Lost) -> tuple[float, float] | None:
    """Return the level just before the first number that is not finite, and that of the last finite ones after it.

    None if none is finite before, or fewer than `CLIMB_WINDOW_RECORDS` after.
    """
    value, finite = loss.series.value, ~loss.bad
    before, after = value[: loss.at][finite[: loss.at]], value[loss.at :][finite[loss.at :]]
    if not len(before) or len(after) < CLIMB_WINDOW_RECORDS:
        return None
    return median(before[-CLIMB_WINDOW_RECORDS:]), median(after[-CLIMB_WINDOW_RECORDS:])


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
    """Return the share of numbers that are not finite in each of `NOT_FINITE_STRETCHES` stretches from the first on."""
    after = loss.bad[loss.at :]
    if len(after) < 2 * NOT_FINITE_STRETCHES:
        return ()
    edges = np.linspace(0, len(after), NOT_FINITE_STRETCHES + 1).astype(int)
    return tuple(float(after[first:last].mean()) for first, last in pairwise(edges))


# The loss scaler of half precision: which steps it skips, and how far its scale comes down.


MAX_HALVED_SCALE_RATIO = 0.75
"""A scale below this share of the one before was halved. Chosen: between a half and the same."""
LEAST_HEALTHY = 1.0
"""The least scale from which training can go on. Source: opt_175b_logbook."""
MIN_NET_HALVINGS = 6
"""Halvings, net, that are a fall. Chosen: a healthy scaler goes up and down by one or two."""
BELOW_HEALTHY = 2
"""Halvings below the least healthy scale that are a fall. Chosen: there a healthy scaler never is."""
MAX_DESCENT_RECORDS = 20
"""Records in which a scaler comes down from its start. Chosen: torch's 2 ** 16 takes sixteen."""
DESCENT_SHARE = 0.05
"""The same as a share of the log. Chosen: by hand."""


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
    apart = median_gap(run["grad_norm"].step)
    return len(at) > 0 and all(float(np.abs(at - step).min()) <= apart for step in steps)


def _counted(run: Run) -> Series | None:
    if len(count := finite_of(run, "skipped_iterations")):
        rising = len(count) > 2 and bool(np.all(np.diff(count.value) >= 0)) and count.value[-1] > 0
        return Series(count.name, count.step, np.diff(count.value, prepend=0.0) if rising else count.value)
    if "overflow" in run and "loss" in run:  # messages of skipped steps, between the records of those that were not
        skipped = run["overflow"].where(run["overflow"].value > 0)
        step = np.union1d(skipped.step, run["loss"].step)
        return Series(skipped.name, step, np.isin(step, skipped.step).astype(np.float64))
    if len(scale := finite_of(run, "loss_scale")) > 1:
        halved = scale.value[1:] < MAX_HALVED_SCALE_RATIO * scale.value[:-1]
        return Series(scale.name, scale.step, np.concatenate([[0.0], halved.astype(np.float64)]))
    return None


def _probing(run: Run, count: Series) -> int:
    """Return how many records belong to the descent from where the scaler began."""
    few = min(MAX_DESCENT_RECORDS, len(count) // 2)
    if count.step[0] > MAX_DESCENT_RECORDS:
        return few
    skipped = count.value > 0  # before the first halving there is none
    descent = len(skipped) if skipped[1:].all() else 1 + int(np.argmin(skipped[1:]))
    scale = run.series.get("loss_scale")
    below = np.empty(0) if scale is None else scale.step[scale.value < LEAST_HEALTHY]
    healthy = int(np.searchsorted(count.step, below[0])) if len(below) else len(skipped)
    return max(few, min(descent, healthy))


def descent_of(scale: Series, *, skips_at_end: bool) -> tuple[int, int] | None:
    """Return the indices of the last record before the fall of a scale, and of the end of that; None if it has none.

    It ends below 1, at a 64th, or where steps are skipped even there, or is far. One that is below 1 from the first
    record on has to fall further.

    Args:
        scale: The loss scale, above zero.
        skips_at_end: Whether a step is skipped at its last record.
    """
    value, log = scale.value, np.log2(scale.value)
    sinks = log[-1] <= -MIN_NET_HALVINGS and float(np.ptp(log)) >= MIN_NET_HALVINGS and log[-1] < log[0]
    least = bool(value[-1] < LEAST_HEALTHY or (skips_at_end and value[-1] == LEAST_HEALTHY))
    falls = value[0] > LEAST_HEALTHY or log[0] - log[-1] >= BELOW_HEALTHY
    start, low = 0, len(log) - 1
    if not ((least and falls) or sinks):
        start = min(len(log) - 1, max(MAX_DESCENT_RECORDS, int(DESCENT_SHARE * len(log))))
        fall = np.maximum.accumulate(log[start:]) - log[start:]
        if float(fall.max()) < MIN_NET_HALVINGS:
            return None
        low = start + int(np.argmax(fall))
    top = start + int(np.flatnonzero(log[start : low + 1] == log[start : low + 1].max())[-1])
    return top, low


# In what precision a run computes, as its settings or the loss scaler of half precision tell, and what is lost.


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
