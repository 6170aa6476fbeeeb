"""What the weights of a run do: those that stand still, and updates that half precision rounds away."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import figure
from mldebug_mcp.judge.column_pairs import (
    LEAST_PAIRS,
    MIN_RECORDS_FOR_LEVEL,
    columns_of,
    named,
    tail,
    training_loss,
)
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.words import pieces_of
from mldebug_mcp.logs.settings.values import flag_of
from mldebug_mcp.models.diagnosis import DerivedFact

# Norms that stay the same to their last digit.


LEAST_STILL = 10
"""Records of a norm of the weights that tell whether it moves. Chosen."""
FAR_BEYOND = 20.0
"""Times the last logged digit that updates are long together. Chosen: they do not all point outwards."""
STAYED = 0.95
"""Share of its start that a loss keeps which nothing brings down. Chosen."""


def weights_stand_still(run: Run) -> Iterator[DerivedFact]:
    """Yield that the norm of the weights is one number throughout, though gradients and learning rate are not zero.

    Steps of plain gradient descent, learning rate times gradient norm each, would move it by more than its last digit.
    Not this where the loss falls: the norm may be of weights that are frozen.
    """
    norms = [series.finite for series in run.with_role(Quantity.WEIGHT_NORM) if len(series.finite) >= LEAST_STILL]
    still = next((norm for norm in norms if not np.ptp(norm.value) and norm.value[0] > 0), None)
    if still is None or not {"grad_norm", "learning_rate"} <= run.series.keys():
        return
    loss = training_loss(run, MIN_RECORDS_FOR_LEVEL)
    if loss is not None and median(tail(loss)) < STAYED * median(loss.value[:LEAST_STILL]):
        return
    gradient, rate = (run[name].finite for name in ("grad_norm", "learning_rate"))
    if not len(gradient) or not len(rate) or not _would_move(run, still, gradient):
        return
    value = float(still.value[0])
    yield DerivedFact.model_construct(
        fact="weights_stand_still",
        text=(
            f"{named(still)} is exactly {figure(value)} in all {len(still)} records, while {named(rate)} is about "
            f"{figure(float(rate.value.mean()))} and {named(gradient)} about {figure(median(gradient.value))}. "
            "Updates by such gradients would move it."
        ),
        values={"value": value, "records": float(len(still))},
    )


def _would_move(run: Run, norm: Series, gradient: Series) -> bool:
    """Say whether plain steps by a gradient and the learning rate go far beyond the last digit of a norm."""
    rate = run["learning_rate"].finite.value if "learning_rate" in run else np.zeros(0)
    steps = float(norm.step[-1] - norm.step[0]) if run.step_name == "step" else float(len(norm) - 1)
    travelled = steps * float(rate.mean()) * median(gradient.value) if len(rate) else 0.0
    return travelled >= FAR_BEYOND * _last_digit(float(norm.value[0]))


_ON_PURPOSE = regex(r"freez|frozen|linear_?prob|(?:^|[/_.])(?:lora|peft|adapter|vera|dora)", re.IGNORECASE)
"""What settings and norms are called where parts of a model are left as they are on purpose."""
MOVES = 0.01
"""Share of its start by which the norm of another part moves. Chosen: rounding moves none so far."""


_CHANGES = frozenset({"delta", "deltas", "change", "changed", "moved", "update", "updates"})
"""Words of what is logged of how far weights have moved since the record before."""
_OF_NORMS = frozenset({"grad", "gradient", "gradients", "norm", "gnorm", "l2", "g"})
"""Words of a gradient norm beyond those of its part."""


def part_stands_still(run: Run) -> Iterator[DerivedFact]:
    """Yield that the weights of one part keep their norm to the last digit, or do not change, where another part moves.

    Not this where a setting freezes parts, or adapters are trained in their place. A part that has a gradient all the
    same is not frozen: then its weights are left out of the updates.
    """
    changes = [series.finite for series in run.series.values() if _is_change(series)]
    changes = [change for change in changes if len(change) >= LEAST_STILL]
    norms = [norm for norm in columns_of(run, Quantity.WEIGHT_NORM, least=LEAST_STILL) if norm.value[0] > 0]
    unchanged = [change for change in changes if not change.value.any()]
    still = unchanged or [norm for norm in norms if not np.ptp(norm.value)]
    moving = [change for change in changes if median(change.value) > 0] if unchanged else []
    moving = moving or [norm for norm in norms if abs(float(norm.value[-1]) / float(norm.value[0]) - 1) > MOVES]
    if not still or not moving or _leaves_parts(run, moving):
        return
    first, other = float(still[0].value[0]), moving[0].value
    gradient = _gradient_of(run, still[0])
    if gradient is not None and not unchanged and not _would_move(run, still[0], gradient):
        gradient = None
    has = "" if gradient is None else f" {named(gradient)} is about {figure(median(gradient.value))}."
    yield DerivedFact.model_construct(
        fact="part_stands_still_with_gradient" if has else "part_stands_still",
        text=(
            f"{named(still[0])} is exactly {figure(first)} in all {len(still[0])} records, while {named(moving[0])} "
            f"goes from {figure(float(other[0]))} to {figure(float(other[-1]))}.{has} Weights that are trained move."
        ),
        values={"value": first, "records": float(len(still[0]))},
    )


def _is_change(series: Series) -> bool:
    is_of_weights = series.role is None or series.role.quantity in (Quantity.UPDATE_RATIO, Quantity.CHANGED_WEIGHTS)
    return is_of_weights and not _CHANGES.isdisjoint(pieces_of(series.name))


def _gradient_of(run: Run, part: Series) -> Series | None:
    """Return the gradient norm of a part, where it is above zero in most records; None where none is known."""
    words = set(pieces_of(part.name))
    norms = columns_of(run, Quantity.GRADIENT_NORM, least=LEAST_STILL)
    shared = [
        norm for norm in norms if (own := set(pieces_of(norm.name)) - _OF_NORMS) and own <= words and median(norm.value)
    ]
    return shared[0] if shared else None


def _leaves_parts(run: Run, moving: Sequence[Series]) -> bool:
    """Say whether settings or names tell that some parts of the model are not to be trained."""
    named_so = any(_ON_PURPOSE.search(norm.name) for norm in moving)
    return named_so or any(
        bool(setting.value) and flag_of(setting.value) is not False
        for setting in run.settings.values()
        if _ON_PURPOSE.search(setting.key) or _ON_PURPOSE.search(str(setting.value))
    )


def _last_digit(value: float) -> float:
    """Return the unit of the last digit with which a number is written, at least that of double precision."""
    return next((10.0**-places for places in range(13) if round(value, places) == value), abs(value) * 1e-12)


# Updates that are smaller than the distance from one number to the next.


SPACING = {"bf16": 2.0**-8, "fp16": 2.0**-11}
"""Distance of a number from the next as a share of it, at most: 8 and 11 bits of precision (IEEE 754, bfloat16)."""
_PURE = ("pure", "full", "true", "weights")
"""Words that say that the weights themselves are kept in half precision."""


def update_below_spacing(run: Run) -> Iterator[DerivedFact]:
    """Yield updates below half the distance to the next number, where weights are kept in half precision."""
    precision = run.facts.precision
    kept_in = str(run.settings["precision"].value).lower() if "precision" in run.settings else ""
    spacing = SPACING.get(precision or "", 0.0) if any(word in kept_in for word in _PURE) else 0.0
    for ratio in columns_of(run, Quantity.UPDATE_RATIO):
        if spacing and ratio.role is not None and ratio.role.is_whole and 0 < median(ratio.value) < spacing / 2:
            yield DerivedFact.model_construct(
                fact="update_below_spacing",
                text=(
                    f"{named(ratio)} is {figure(median(ratio.value))} (median) and the weights are kept in {kept_in}. "
                    f"{precision} rounds a change below {figure(spacing / 2)} of a weight away, so most updates "
                    "have no effect."
                ),
                values={"ratio": median(ratio.value), "spacing": spacing},
            )


FEW_CHANGE = 0.1
"""Share of the weights that a step changes, below which most stand still. Chosen: in float32 nearly all move."""
_OF_WEIGHTS = regex(r"param|weight", re.IGNORECASE)
"""What the name of a setting holds that gives the type of the weights themselves."""


def few_weights_change(run: Run) -> Iterator[DerivedFact]:
    """Yield that steps change few of the weights where these are kept in half precision, though gradients go on."""
    dtype = run.settings.get("dtype")
    if dtype is None or not _OF_WEIGHTS.search(dtype.key) or run.facts.precision not in SPACING:
        return
    for changed in columns_of(run, Quantity.CHANGED_WEIGHTS, least=LEAST_PAIRS):
        first, last = float(changed.value[0]), median(tail(changed))
        if not last < FEW_CHANGE:
            continue
        spacing = SPACING[run.facts.precision]
        yield DerivedFact.model_construct(
            fact="few_weights_change",
            text=(
                f"{named(changed)} goes from {figure(100 * first)} to {figure(100 * last)} % (median of the last "
                f"third), and {dtype.key} is {dtype.value}. That type rounds a change below "
                f"{figure(spacing / 2)} of a weight away; in float32 nearly every weight moves at each step."
            ),
            values={"first": first, "last": last},
        )
        return
