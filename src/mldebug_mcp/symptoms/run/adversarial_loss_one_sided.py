"""One of the two networks of a GAN has nearly no loss, while the other's stays high."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.measure.statistics import aligned, end_level, median
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

GONE, NEARLY_ALWAYS, SHARE = 0.01, 0.05, 0.9
"""Median below which a loss is gone, and what this share of it is below. Chosen: a discriminator in play is near zero
on single batches alone."""
HIGH = 3.0
"""Cross-entropy from which on a network is beaten. Chosen: the other is 95 % sure on every batch."""
SQUARED, NEAR = 1.0, 0.15
"""Squared error of a generator that is always found out, and how near it is. Chosen: about the mean of a batch."""
FALLS = 0.8
"""Share of its level at first below which a loss comes down. Chosen: the beaten side catches up."""
LEAST = 8
"""Records. Chosen: fewer are the beginning."""
LEAST_OUTPUT = 1e-12
"""Chosen: the logarithm of zero is none."""
ABOVE, OFTEN = 0.05, 0.9
"""Generated samples look more real by so much, and in this share of the records. Chosen: one that learns finds out."""

_PAIRS = (
    (("D_real", "D_fake"), "G_GAN"),  # pix2pix
    (("D_A",), "G_A"),  # CycleGAN
    (("D_B",), "G_B"),
)


@symptom(sources=("ganhacks",), background=0.002)
def adversarial_loss_one_sided(run: Run) -> Evidence | None:
    """Of a GAN one network has nearly no loss over the later half, beside a high one of the other, or by its outputs.

    Not this when: it is near zero on some batches only; the high one comes down; a Wasserstein critic is below zero.
    """
    judged = [_by_outputs(run), *(_by_losses(run, *sides) for sides in _sides(run))]
    if all(one is False for one in judged):
        raise CannotTell(f"no two losses that play against each other, both above zero, have {LEAST} values together")
    return next((one for one in judged if isinstance(one, Evidence)), None)


def _by_outputs(run: Run) -> Evidence | bool | None:
    """Judge the outputs on real and on generated samples; False if they are not logged as probabilities."""
    names = (Quantity.OUTPUT_ON_REAL, Quantity.OUTPUT_ON_GENERATED)
    real, generated = (next(run.with_role(name), None) for name in names)
    if real is None or generated is None:
        return False
    step, one, other = aligned(real.finite, generated.finite)
    if len(step) < LEAST or min(one.min(), other.min()) < 0 or max(one.max(), other.max()) > 1:
        return False
    later = slice(len(step) // 2, None)
    # At most the mean cross-entropy: it is that of the mean outputs.
    cost = -np.log(np.maximum(one[later], LEAST_OUTPUT)) - np.log(np.maximum(1 - other[later], LEAST_OUTPUT))
    above, wins = (other - one)[later], _is_gone(cost)
    # pix2pix calls its losses D_real and D_fake
    fooled = "real" not in real.name.lower() and median(above) >= ABOVE and float(np.mean(above > 0)) >= OFTEN
    if not wins and not fooled:
        return None
    what = "tells real from generated samples nearly always" if wins else "takes generated samples for real ones"
    first, levels = float(step[later][0]), (median(one[later]), median(other[later]))
    return Evidence(
        f"{real.name} is {figure(levels[0])} and {generated.name} {figure(levels[1])} from {run.place(first)} on "
        f"(medians): the discriminator {what}",
        steps=(first,),
        values={"real": levels[0], "generated": levels[1], "discriminator_wins": float(wins)},
    )


def _sides(run: Run) -> Iterator[tuple[tuple[str, ...], str]]:
    """Return the losses of each discriminator, and that of its generator, by name."""
    quantities = (Quantity.DISCRIMINATOR_LOSS, Quantity.GENERATOR_LOSS)
    named = [next((one.name for one in run.with_role(one, phase="train")), "") for one in quantities]
    for parts, generator in (((named[0],), named[1]), *_PAIRS):
        if generator in run and all(part in run for part in parts):
            yield parts, generator


def _by_losses(run: Run, parts: tuple[str, ...], generator: str) -> Evidence | bool | None:
    """Judge the losses of both sides; False if they cannot be compared."""
    both = [aligned(run[part].finite, run[generator].finite) for part in parts]
    step, _, against = both[0]
    if len(step) < LEAST or any(len(one[0]) != len(step) for one in both):
        return False
    # Of two parts the larger one counts: both real and generated samples have to be recognised.
    own = np.max([value for _, value, _ in both], axis=0)
    if min(float(own.min()), float(against.min())) < 0:
        return False
    later, name = slice(len(step) // 2, None), " and ".join(parts)
    for wins, won, lost in ((True, own, against), (False, against, own)):
        if _is_gone(won[later]) and _is_beaten(lost, squared=wins):
            first, levels = float(step[later][0]), (median(won[later]), median(lost[later]))
            return Evidence(
                f"{name if wins else generator} is {figure(levels[0])} from {run.place(first)} on (median), while "
                f"{generator if wins else name} is {figure(levels[1])} (it began at {figure(lost[0])})",
                steps=(first,),
                values={"gone": levels[0], "high": levels[1], "discriminator_wins": float(wins)},
            )
    return None


def _is_gone(later: Floats) -> bool:
    return median(later) < GONE and float(np.quantile(later, SHARE)) < NEARLY_ALWAYS


def _is_beaten(loss: Floats, *, squared: bool) -> bool:
    """Say whether a loss is as high as that of a network that always loses, and does not come down."""
    later = loss[len(loss) // 2 :]
    level = median(later)
    stays = end_level(loss) >= FALLS * min(level, median(loss[: len(loss) // 2]))
    return stays and (level >= HIGH or (squared and bool(np.all(np.abs(later - SQUARED) < NEAR))))
