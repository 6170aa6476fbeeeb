"""The gradient norm: against what labels alone give, pinned at one value, and by parts of the model."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from mldebug_mcp.checks.check import CannotTell
from mldebug_mcp.checks.curve import end_level, mad, monotone, noise, start_level
from mldebug_mcp.checks.jumps import Spike, baseline, spikes
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.run import Run, Series

MAX_NORM_DIFFERENCE = 2e-3
"""Norms this near to each other are one value. Chosen: clipping divides by the norm plus 1e-6, and logs round."""
LEAST_LAYERS = 4
"""Layers whose order can be judged. Chosen: four are in order by chance once in twelve."""
JUMPS = 10.0
"""Times the recent level that a norm jumps to: 0.1 to 10 are healthy in fine-tuning, 100 unstable. Source:
axolotl_stability."""
SPREADS = 8.0
"""Standard deviations of the logarithm of a norm that jumps, beyond heavy tails of small batches. Source:
axolotl_stability."""
WINDOWS = 20
"""Windows that the norms make; one of them is compared with a jump behind it. Chosen: by hand."""
WIDEST = 50
"""Norms of such a window at most. Chosen: by hand."""
NARROWEST = 6
"""Norms of such a window at least. Chosen: six show a level."""
LEAST_LOSSES = 5
"""Losses from which a level is known. Chosen: by hand."""
NOISES = 5.0
"""Times its noise by which a loss has moved. Chosen: by hand."""
SMALL_LOSS = 0.2
"""Share of its start by which a loss moves that is learnt, or below which it explains a small norm. Chosen: healthy
norms fall about as the loss."""
_FIRST = frozenset({"first", "input", "in", "bottom", "embed", "embedding", "embeddings", "wte", "stem"})
_LAST = frozenset({"last", "output", "out", "top", "head", "classifier", "logits"})
"""Words that name the two ends of a model."""
_RANK = regex(r"(?:rank|gpu|node|worker|device|host) ?\d+", re.IGNORECASE)
"""A process, whose gradient is that of the whole model."""


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


def norm_of(run: Run) -> Series | None:
    """Return the gradient norm of the whole model, finite values only; None if none is logged."""
    found = gradient_norm(run)
    return found.finite if found is not None and len(found.finite) else None


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
    loss = run["loss"].finite.value if "loss" in run else np.empty(0)
    if len(loss) < LEAST_LOSSES or (start := start_level(loss)) == 0:
        return 1.0
    end = end_level(loss)
    return abs(end / start) if abs(end - start) > NOISES * noise(loss) else 1.0


def refuse_uncomputed(run: Run, norm: Series, what: str) -> None:
    """Raise CannotTell if the loss is learnt although no norm is above zero, or finite."""
    if abs(1 - loss_moved(run)) > SMALL_LOSS:
        raise CannotTell(f"{norm.name} is {what} in all records, yet the loss is learnt: the norm is not computed")


def pinned(norm: Series) -> tuple[float, float, float] | None:
    """Return the value above which no norm goes and at which most stand, None if none is above zero.

    With it stand the share of the records that have it, and the step of the first of them.
    """
    highest = float(norm.value.max(initial=0.0))
    if highest <= 0:
        return None
    at = norm.value >= (1 - MAX_NORM_DIFFERENCE) * highest
    return highest, float(at.mean()), float(norm.step[int(np.argmax(at))])


def parts_of(run: Run) -> tuple[Part, ...]:
    """Return the parts of the model whose gradient norms are logged, in the order of their names."""
    found = {}
    for series in run.with_role(Quantity.GRADIENT_NORM, phase="train", parts=True):
        role, values = series.role, series.finite.value
        if role is None or not len(values) or (role.is_whole and not role.namespace):
            continue
        name = role.part or role.namespace
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


def ends_of(parts: Sequence[Part]) -> tuple[Part, Part, int, float] | None:
    """Return the ends of the largest family of layers, else those that are named as the ends of the model.

    With them stand the number of layers, and the rank correlation of their levels with depth. None if there are too few
    layers and not both ends.
    """
    families: dict[str, list[Part]] = defaultdict(list)
    for part in parts:
        if part.depth is not None and part.level > 0:
            families[part.family].append(part)
    if not families:
        return _between_ends(parts)
    largest = max(families, key=lambda family: len(families[family]))
    layers = sorted(families[largest], key=lambda part: part.depth or 0)
    if len(layers) < LEAST_LAYERS:
        return _between_ends(parts)
    order = monotone(np.array([part.level for part in layers]))
    return layers[0], layers[-1], len(layers), order


def _between_ends(parts: Sequence[Part]) -> tuple[Part, Part, int, float] | None:
    """Return the parts that are named as the first and the last of the model, in order as two always are."""
    first, last = (
        next((part for part in parts if part.level > 0 and words & set(re.findall("[a-z]+", part.name.lower()))), None)
        for words in (_FIRST, _LAST)
    )
    if first is None or last is None or first is last:
        return None
    return first, last, 2, 1.0 if last.level > first.level else -1.0


def jumps_of(norm: Series) -> list[Spike]:
    """Return where the logarithm of the norm stands far above its level, in units of its own scatter."""
    log = np.log(norm.value)
    width = int(np.clip(len(log) // WINDOWS, NARROWEST, WIDEST))
    base = baseline(log, width)
    overall = mad(base.rest(log))
    spread = np.clip(base.spread, overall / 2, overall)  # a window may happen to be loud or quiet
    threshold = np.maximum(SPREADS * spread, math.log(JUMPS))
    return spikes(log, width, threshold, base, skip=width) if base.is_exceeded(log, threshold) else []
