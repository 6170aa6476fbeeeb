"""Symptoms that an overfit probe shows, each with the causes that produce it, found by `checks.symptoms`."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from mldebug_mcp.checks.check import CannotTell, Evidence
from mldebug_mcp.probe.measured import Measured

# What several symptoms of a probe ask of its measurements.


MIN_LATE_FALL_SHARE = 0.03
"""Relative fall over the last quarter that counts as still falling. Chosen: noise of a full batch is far below."""
LEAST_AHEAD = 0.1
"""Part of the loss that lies ahead of a curve still falling, if it goes on as in its last half. Chosen: a curve that
has come to its floor has a few hundredths ahead of it, one that is slow most of its loss."""
FALLS_FAST = 0.1
"""Relative fall over the last quarter of a curve far from its floor. Chosen: near it a curve falls by hundredths."""
LAST_QUARTERS = (3, 2, 1)
"""Quarters that are compared, counted from the end. Chosen: two falls tell how fast a fall fades."""
FEW_STEPS = 50
"""Steps that a loop must have made in its time. Chosen: fewer say nothing of what it could have learnt."""
SMALL_UPDATE = 3e-5
"""Of the weights that a step changes them by. Chosen: a thirtieth of the 1e-3 that cs231n_nn3 gives."""
MAX_ROUNDING_ERRORS = 4.0
"""Roundings of its precision by which two calls may differ. Chosen: a sum in another order makes one or two."""
MIN_TIMES_SEEDED_DIFFERENCE = 10.0
"""Times the difference of calls with one seed that free ones must differ by. Chosen: two seeds differ by as much."""
MIN_LEARNT_FALL_SHARE = 0.2
"""Part of a loss by which it must fall to be learnt. Chosen: an output that shrinks to its mean takes off a tenth."""
MIN_FALL_DEVIATIONS = 2.0
"""Standard deviations of the last losses by which it must fall as well. Chosen: noise is not a fall."""
AT_REST = 0.1
"""Part of the first gradient that is left where a loss has come to rest. Chosen: one that is stuck keeps most of it."""


def is_random(measured: Measured) -> bool:
    """Tell whether calls of the loss with nothing changed, in evaluation mode, give different losses.

    What counts as different comes from the calls: calls with one seed differ by rounding alone where all that is drawn
    can be seeded. Otherwise rounding bounds it: it adds up to the root of that of one operation at most.
    """
    free, replayed = measured.repeated_losses or [], measured.replayed_losses or []
    if len(free) < 2 or not all(map(math.isfinite, (*free, *replayed))):
        return False
    rounding = (measured.loss_rounding or 0.0) * max(map(abs, free))
    drawn, again = _range(free), _range(replayed)
    return drawn > MAX_ROUNDING_ERRORS * rounding and (
        drawn > MIN_TIMES_SEEDED_DIFFERENCE * again or drawn > rounding / math.sqrt(measured.loss_rounding or 1)
    )


def _range(losses: Sequence[float]) -> float:
    return max(losses) - min(losses) if losses else 0.0


FAR_BELOW = 1000.0
"""Times the size of the first loss, and at least 1, below zero. Chosen: no loss with a floor lies so far down."""


def is_far_below_zero(losses: Sequence[float]) -> bool:
    """Tell whether losses end so far below zero that they have no floor; then noise is nothing to their fall."""
    return bool(losses) and -math.inf < losses[-1] < -FAR_BELOW * max(1.0, abs(losses[0]))


def require_unlike_units(measured: Measured, otherwise: str) -> None:
    """Raise CannotTell where all units of a layer have the same weights, with what comes of that."""
    if measured.alike_units:
        raise CannotTell(f"units with the same weights {otherwise}")


def listed(what: str, names: Sequence[str], most: int = 3) -> Evidence | None:
    """Return that something is seen of some names, with the first few of them; None without a name."""
    return Evidence(f"{what}: {', '.join(names[:most])}") if names else None


def takes_turns(measured: Measured) -> bool:
    """Tell whether a step of the user's is several optimizers in turn, as adversaries have: its loss need not fall."""
    return measured.watched is not None and measured.watched.optimizers > 1


def without_noise(measured: Measured) -> Measured:
    """Return the measurements that a second identical call does not contradict.

    A loss that each call draws anew cannot be compared from step to step, between optimizers or with a formula; nor can
    one that several optimizers change in turn. A batch that is memorised nevertheless shows that its noise is small.
    """
    if measured.curve is not None and is_far_below_zero(measured.curve.losses):
        return measured
    if measured.memorised or not (is_random(measured) or takes_turns(measured)):
        return measured
    watched = measured.watched and measured.watched.model_copy(update={"uphill": None})
    compared = ("curve", "memorised", "contrast", "seeds", "loss_formula", "reference")
    return measured.model_copy(update={**dict.fromkeys(compared), "watched": watched})


def learns(measured: Measured) -> bool:
    """Tell whether a batch is learnt although its loss did not come down to a goal that is known.

    A loss that each call draws anew falls clearly, and with the same draws at each step it is memorised or comes to
    rest. One of a form that is not known, which may have any floor, falls clearly and comes to rest. One of several
    optimizers in turn falls clearly, or is memorised, by a single one.
    """
    if measured.memorised or measured.curve is None or measured.gradients is None:
        return False
    if takes_turns(measured):
        alone = measured.contrast
        return alone is not None and (alone.memorised or _fell(alone.losses))
    if not _fell(measured.curve.losses):
        return False
    if is_random(measured):
        same = measured.same_draws
        rests = same is not None and _fell(same.losses) and _is_at_rest(measured, same.last_gradient)
        return same is not None and (same.memorised or rests)
    return (
        measured.loss_formula is None
        and measured.gradients_after is not None
        and _is_at_rest(measured, measured.gradients_after.norm)
    )


def _fell(losses: Sequence[float]) -> bool:
    """Tell whether losses fell by a clear part of their size, and by far more than they vary."""
    if len(losses) < 8 or not all(map(math.isfinite, losses)):
        return False
    first, last = losses[:3], losses[-(len(losses) // 4) :]
    fall = statistics.fmean(first) - statistics.fmean(last)
    size = max(abs(statistics.fmean(first)), abs(statistics.fmean(last)))
    return fall > MIN_LEARNT_FALL_SHARE * size and fall > MIN_FALL_DEVIATIONS * statistics.stdev(last)


def _is_at_rest(measured: Measured, gradient: float | None) -> bool:
    assert measured.gradients is not None
    return gradient is not None and gradient <= AT_REST * measured.gradients.norm


def still_falling(losses: Sequence[float]) -> bool:
    """Tell whether a curve that was given many steps was still falling in its last quarter, and far from its floor."""
    if len(losses) < 8 or not all(map(math.isfinite, losses)):
        return False
    quarter = len(losses) // 4
    earlier, before, last = (
        statistics.fmean(losses[-count * quarter : len(losses) - (count - 1) * quarter]) for count in LAST_QUARTERS
    )
    fall = before - last
    if fall <= MIN_LATE_FALL_SHARE * abs(before) or last >= losses[0]:
        return False
    # Each quarter takes off the same part of what the one before it took off.
    part = fall / (earlier - before) if earlier > before else 1.0
    ahead = fall * part / (1 - part) if part < 1 else math.inf
    return ahead >= LEAST_AHEAD * abs(last) or fall >= FALLS_FAST * abs(before)


def was_cut_short(measured: Measured) -> bool:
    """Tell whether time was up before a loop of the probe's own had learnt what it could: its rate is not to blame.

    A loop of the user's has a rate of the user's, which may well be what makes it slow.
    """
    curve = measured.curve
    if curve is None or curve.learning_rate is None or curve.ended != "time":
        return False
    return len(curve.losses) < FEW_STEPS or still_falling(curve.losses)


def lacks_time(measured: Measured) -> bool:
    """Tell whether time was up in training, or in the loop that decides what a loss without a known floor came to."""
    loops = [measured.curve]
    loops += [measured.same_draws] * is_random(measured) + [measured.contrast] * takes_turns(measured)
    return any(loop is None or loop.ended == "time" for loop in loops)


def steps_are_tiny(measured: Measured) -> bool:
    """Tell whether the user's steps change the weights by next to nothing, where that was measured."""
    return measured.watched is not None and measured.update_ratio is not None and measured.update_ratio < SMALL_UPDATE


def low_precision_alone(measured: Measured) -> bool:
    """Tell whether a non-finite value of the first pass is gone in 32 bits."""
    full = measured.full_precision
    return full is not None and full.loss is not None and math.isfinite(full.loss) and full.gradients_finite is True
