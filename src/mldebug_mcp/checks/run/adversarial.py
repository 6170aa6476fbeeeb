"""Is one of the two networks of a GAN beaten by the other?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mldebug_mcp.checks.check import CannotTell, Evidence, symptom
from mldebug_mcp.checks.curve import aligned, end_level, true_at_end
from mldebug_mcp.core.arrays import median, quantile
from mldebug_mcp.core.lazy import dataclass, replace
from mldebug_mcp.core.text import figure
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.run import Run

# The two networks of a GAN: what they log of each other, and whether one of them is beaten.


MAX_VANISHED_LOSS = 0.01
"""Median below which a loss is gone. Chosen: a discriminator in play is near zero on single batches alone."""
NEARLY_ALWAYS = 0.05
"""Bound of nearly all records of a loss that is gone. Chosen: in play it is near zero on single batches alone."""
MIN_SHARE_BELOW = 0.9
"""Share of the records below that bound. Chosen: a discriminator in play is near zero on single batches alone."""
MIN_BEATEN_CROSS_ENTROPY = 3.0
"""Cross-entropy from which on a network is beaten. Chosen: the other is 95 % sure on every batch."""
BEATEN_SQUARED_ERROR = 1.0
"""Squared error of a generator that is always found out. Chosen: about the mean of a batch."""
NEAR_SQUARED_ERROR = 0.15
"""How near to it the error is. Chosen: about the mean of a batch."""
MIN_KEPT_LOSS_SHARE = 0.8
"""Share of its level at first below which a loss comes down. Chosen: the beaten side catches up."""
MIN_RECORDS = 8
"""Records. Chosen: fewer are the beginning."""
LEAST_OUTPUT = 1e-12
"""What a probability is taken for, at least. Chosen: zero has no logarithm."""
IN_PLAY = "in_play"
"""The value that says for how many steps both networks were in play."""
MIN_FOOLED_MARGIN = 0.05
"""What generated samples look more real by. Chosen: a discriminator that learns finds out."""
MIN_FOOLED_RECORD_SHARE = 0.9
"""Share of the records in which they do. Chosen: a discriminator that learns finds out."""
_PAIRS = (
    (("D_real", "D_fake"), "G_GAN"),  # pix2pix
    (("D_A",), "G_A"),  # CycleGAN
    (("D_B",), "G_B"),
)


@dataclass(frozen=True, slots=True)
class Contest:
    """What two networks log of each other, from where it is decided on, else over the later half.

    Args:
        names: What stands for the discriminator, and for the generator.
        step: The first step from which on it is decided, else that of the later half.
        levels: Medians there.
        first: The value of each in the first record.
        wins: Whether the discriminator wins; None where neither does.
        of_outputs: Whether they are outputs on real and on generated samples, and no losses.
        in_play: Steps before it, in which both networks are in play.
    """

    names: tuple[str, str]
    step: float
    levels: tuple[float, float]
    first: tuple[float, float]
    wins: bool | None
    of_outputs: bool = False
    in_play: float = 0.0


def losses_of_players(run: Run) -> list[str]:
    """Return the names of the losses of a discriminator and of its generator, as logged; none without both."""
    parts, generator = next(_sides(run), ((), ""))
    return [run[name].logged_as or name for name in (*parts, generator)] if generator else []


def contests(run: Run) -> list[Contest]:
    """Return what the outputs on real and generated samples tell, then what the losses of each pair do."""
    judged = (_adversarial_by_outputs(run), *(_adversarial_by_losses(run, *sides) for sides in _sides(run)))
    return [contest for contest in judged if contest is not None]


def _adversarial_by_outputs(run: Run) -> Contest | None:
    """Judge the outputs on real and on generated samples; None if they are not logged as probabilities."""
    names = (Quantity.OUTPUT_ON_REAL, Quantity.OUTPUT_ON_GENERATED)
    real, generated = (next(run.with_role(name), None) for name in names)
    if real is None or generated is None:
        return None
    step, array, other = aligned(real.finite, generated.finite)
    if len(step) < MIN_RECORDS or min(array.min(), other.min()) < 0 or max(array.max(), other.max()) > 1:
        return None
    later = slice(len(step) // 2, None)
    # At most the mean cross-entropy: it is that of the mean outputs.
    cost = -np.log(np.maximum(array, LEAST_OUTPUT)) - np.log(np.maximum(1 - other, LEAST_OUTPUT))
    above, wins = (other - array)[later], _is_gone(cost[later])
    # pix2pix calls its losses D_real and D_fake
    fooled = (
        "real" not in real.name.lower()
        and median(above) >= MIN_FOOLED_MARGIN
        and float(np.mean(above > 0)) >= MIN_FOOLED_RECORD_SHARE
    )
    contest = _contest(
        (real.name, generated.name),
        step,
        array,
        other,
        wins=wins if wins or fooled else None,
        gone=cost if wins else None,
    )
    return replace(contest, of_outputs=True)


def _contest(
    names: tuple[str, str],
    step: Floats,
    values: Floats,
    other: Floats,
    *,
    wins: bool | None,
    gone: Floats | None = None,
) -> Contest:
    """Return a contest that is decided from the record on behind which the loss that is `gone` never comes back."""
    half = len(step) // 2
    since = half - true_at_end(gone[:half] < NEARLY_ALWAYS) if gone is not None else half
    levels, first = (median(values[since:]), median(other[since:])), (float(values[0]), float(other[0]))
    return Contest(names, float(step[since]), levels, first, wins, in_play=float(step[since] - step[0]))


def _sides(run: Run) -> Iterator[tuple[tuple[str, ...], str]]:
    """Return the losses of each discriminator, and that of its generator, by name."""
    quantities = (Quantity.DISCRIMINATOR_LOSS, Quantity.GENERATOR_LOSS)
    named = [next((series.name for series in run.with_role(quantity, phase="train")), "") for quantity in quantities]
    for parts, generator in (((named[0],), named[1]), *_PAIRS):
        if generator in run and all(part in run for part in parts):
            yield parts, generator


def _adversarial_by_losses(run: Run, parts: tuple[str, ...], generator: str) -> Contest | None:
    """Judge the losses of both sides; None if they cannot be compared."""
    both = [aligned(run[part].finite, run[generator].finite) for part in parts]
    step, _, against = both[0]
    if len(step) < MIN_RECORDS or any(len(pair[0]) != len(step) for pair in both):
        return None
    # Of two parts the larger one counts: both real and generated samples have to be recognised.
    own = np.max([value for _, value, _ in both], axis=0)
    if min(float(own.min()), float(against.min())) < 0:
        return None
    later = slice(len(step) // 2, None)
    sides = ((True, own, against), (False, against, own))
    won = ((wins, gone) for wins, gone, lost in sides if _is_gone(gone[later]) and _is_beaten(lost, squared=wins))
    wins, gone = next(won, (None, None))
    return _contest((" and ".join(parts), generator), step, own, against, wins=wins, gone=gone)


def _is_gone(later: Floats) -> bool:
    return median(later) < MAX_VANISHED_LOSS and quantile(later, MIN_SHARE_BELOW) < NEARLY_ALWAYS


def _is_beaten(loss: Floats, *, squared: bool) -> bool:
    """Say whether a loss is as high as that of a network that always loses, and does not come down."""
    later = loss[len(loss) // 2 :]
    level = median(later)
    stays = end_level(loss) >= MIN_KEPT_LOSS_SHARE * min(level, median(loss[: len(loss) // 2]))
    return stays and (
        level >= MIN_BEATEN_CROSS_ENTROPY
        or (squared and bool(np.all(np.abs(later - BEATEN_SQUARED_ERROR) < NEAR_SQUARED_ERROR)))
    )


# One of the two networks of a GAN has nearly no loss, while the other's stays high.


@symptom(sources=("ganhacks",), background=0.002)
def adversarial_loss_one_sided(run: Run) -> Evidence | None:
    """Of a GAN one network has nearly no loss over the later half, with a high one of the other, or by its outputs.

    Not this when: it is near zero on some batches only; the high one comes down; a Wasserstein critic is below zero.
    """
    logged = contests(run)
    if not logged:
        raise CannotTell(
            f"no two losses that play against each other, both above zero, have {MIN_RECORDS} values together"
        )
    won = next((contest for contest in logged if contest.wins is not None), None)
    return None if won is None else _by_outputs(run, won) if won.of_outputs else _by_losses(run, won)


def _by_outputs(run: Run, won: Contest) -> Evidence:
    (real, generated), levels = won.names, won.levels
    what = "tells real from generated samples nearly always" if won.wins else "takes generated samples for real ones"
    return Evidence(
        f"{real} is {figure(levels[0])} and {generated} {figure(levels[1])} from {run.place(won.step)} on (medians): "
        f"the discriminator {what}",
        steps=(won.step,),
        values={
            "real": levels[0],
            "generated": levels[1],
            "discriminator_wins": float(won.wins or 0),
            IN_PLAY: won.in_play,
        },
    )


def _by_losses(run: Run, won: Contest) -> Evidence:
    winner, loser = (0, 1) if won.wins else (1, 0)
    gone, high = won.levels[winner], won.levels[loser]
    return Evidence(
        f"{won.names[winner]} is {figure(gone)} from {run.place(won.step)} on (median), while {won.names[loser]} is "
        f"{figure(high)} (it began at {figure(won.first[loser])})",
        steps=(won.step,),
        values={"gone": gone, "high": high, "discriminator_wins": float(won.wins or 0), IN_PLAY: won.in_play},
    )
