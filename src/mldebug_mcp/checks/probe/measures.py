"""What several symptoms of a probe ask of its measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mldebug_mcp.probe.measured import Measured

FALLING = 0.03
"""Relative fall over the last quarter that counts as still falling. Chosen: noise of a full batch is far below."""
FEW_STEPS = 50
"""Steps that a loop must have made in its time. Chosen: fewer say nothing of what it could have learnt."""
SMALL_UPDATE = 3e-5
"""Of the weights that a step changes them by. Chosen: a thirtieth of the 1e-3 that cs231n_nn3 gives."""
RANDOM = 1e-3
"""Relative difference of two identical calls above which the loss is random. Chosen: rounding stays below 1e-4."""


def is_random(seen: Measured) -> bool:
    """Tell whether two calls of the loss with nothing changed, in evaluation mode, give different losses."""
    losses = seen.repeated_losses
    if losses is None or len(losses) < 2 or not all(map(math.isfinite, losses)):
        return False
    return abs(losses[0] - losses[1]) > RANDOM * max(map(abs, losses))


def without_noise(seen: Measured) -> Measured:
    """Return the measurements that a second identical call does not contradict.

    A loss that each call draws anew cannot be compared from step to step, between optimizers or with a formula. A batch
    that is memorised nevertheless shows that its noise is small.
    """
    if seen.memorised or not is_random(seen):
        return seen
    watched = seen.watched and seen.watched.model_copy(update={"uphill": None})
    compared = ("curve", "memorised", "contrast", "seeds", "loss_formula", "reference")
    return seen.model_copy(update={**dict.fromkeys(compared), "watched": watched})


def still_falling(losses: Sequence[float]) -> bool:
    """Tell whether a curve that was given many steps was still falling in its last quarter."""
    if len(losses) < 8 or not all(map(math.isfinite, losses)):
        return False
    quarter = len(losses) // 4
    before = sum(losses[-2 * quarter : -quarter]) / quarter
    last = sum(losses[-quarter:]) / quarter
    return before - last > FALLING * abs(before) and last < losses[0]


def was_cut_short(seen: Measured) -> bool:
    """Tell whether time was up before a loop of the probe's own had learnt what it could: its rate is not to blame.

    A loop of the user's has a rate of the user's, which may well be what makes it slow.
    """
    curve = seen.curve
    if curve is None or curve.learning_rate is None or curve.ended != "time":
        return False
    return len(curve.losses) < FEW_STEPS or still_falling(curve.losses)


def steps_are_tiny(seen: Measured) -> bool:
    """Tell whether the user's steps change the weights by next to nothing, where that was measured."""
    return seen.watched is not None and seen.update_ratio is not None and seen.update_ratio < SMALL_UPDATE


def low_precision_alone(seen: Measured) -> bool:
    """Tell whether a non-finite value of the first pass is gone in 32 bits."""
    full = seen.full_precision
    return full is not None and full.loss is not None and math.isfinite(full.loss) and full.gradients_finite is True
