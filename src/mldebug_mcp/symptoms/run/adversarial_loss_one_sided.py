"""One of the two networks of a GAN has nearly no loss, while the other's stays high."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.measure.statistics import aligned, end_level, median
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

GONE, NEARLY_ALWAYS = 0.01, 0.05
"""A cross-entropy or a squared error is gone if its median is below the first number and 90 % of it below the second:
a discriminator that is in play is near zero on single batches, and far from it on others."""
HIGH = 3.0
"""A cross-entropy from which on a network is beaten: the other is 95 % sure on every batch."""
SQUARED, NEAR = 1.0, 0.15
"""The squared error of a generator that is always found out."""
FALLS = 0.8
"""A loss that ends below this share of its level at first is coming down: the beaten side catches up. All were
chosen by hand; that a discriminator without a loss is a failure is the source's."""
LEAST = 8
LEAST_OUTPUT = 1e-12
ABOVE, OFTEN = 0.05, 0.9
"""Generated samples look more real to a discriminator by so much (median), and in this share of the records: one that
learns takes them for what they are within some batches. Both were chosen by hand."""

_PAIRS = (
    (("D_real", "D_fake"), "G_GAN"),  # pix2pix
    (("D_A",), "G_A"),  # CycleGAN
    (("D_B",), "G_B"),
)


class _Side(NamedTuple):
    name: str
    value: Floats


@symptom(
    sources=("ganhacks",),
    background=0.002,
)
def adversarial_loss_one_sided(run: Run) -> Evidence | None:
    """The loss of a GAN's discriminator is gone over the later half of the log beside a high one of its generator.

    Or the other way round; or its outputs tell real from generated samples so surely that the cross-entropy of them
    would be gone, whatever loss the generator is given, or take generated samples for the real ones throughout.
    Not this when: it is near zero on some batches only; the high one comes down; the losses are those of a
    Wasserstein critic, which have no zero to reach (unknown where one is negative). A generator whose loss holds a
    distance to a target too, as in pix2pix, is high by itself: so the other must be gone nearly always.
    """
    outputs = _outputs(run)
    judged = outputs is not None
    if outputs is not None and (found := _by_outputs(run, outputs)) is not None:
        return found
    for step, discriminator, generator in _sides(run):
        if min(float(discriminator.value.min()), float(generator.value.min())) < 0:
            continue
        judged = True
        later = slice(len(step) // 2, None)
        for won, lost in ((discriminator, generator), (generator, discriminator)):
            if _is_gone(won.value[later]) and _is_beaten(lost.value, squared=won is discriminator):
                return Evidence(
                    f"{won.name} is {figure(median(won.value[later]))} from {run.step_name} "
                    f"{figure(float(step[later][0]))} on (median), while {lost.name} is "
                    f"{figure(median(lost.value[later]))} (it began at {figure(float(lost.value[0]))})",
                    steps=(float(step[later][0]),),
                    values={
                        "gone": median(won.value[later]),
                        "high": median(lost.value[later]),
                        "discriminator_wins": float(won is discriminator),
                    },
                )
    if not judged:
        raise CannotTell(f"no two losses that play against each other, both above zero, have {LEAST} values together")
    return None


class _Outputs(NamedTuple):
    """What a discriminator says of samples in the later half, as probabilities that they are real."""

    names: tuple[str, str]
    first: float
    real: Floats
    generated: Floats


def _outputs(run: Run) -> _Outputs | None:
    """Return the outputs on real and on generated samples, None if they are not logged as probabilities."""
    real = next(run.with_role(Quantity.OUTPUT_ON_REAL), None)
    generated = next(run.with_role(Quantity.OUTPUT_ON_GENERATED), None)
    if real is None or generated is None:
        return None
    step, one, other = aligned(real.finite, generated.finite)
    if len(step) < LEAST or min(one.min(), other.min()) < 0 or max(one.max(), other.max()) > 1:
        return None
    later = len(step) // 2
    return _Outputs((real.name, generated.name), float(step[later]), one[later:], other[later:])


def _by_outputs(run: Run, outputs: _Outputs) -> Evidence | None:
    real, generated = outputs.real, outputs.generated
    # At most the mean cross-entropy: it is that of the mean outputs.
    cost = -np.log(np.maximum(real, LEAST_OUTPUT)) - np.log(np.maximum(1 - generated, LEAST_OUTPUT))
    above = generated - real
    wins = _is_gone(cost)
    if "real" in outputs.names[0].lower() and not wins:
        return None  # pix2pix calls its losses D_real and D_fake
    if not wins and (median(above) < ABOVE or float(np.mean(above > 0)) < OFTEN):
        return None
    what = "tells real from generated samples nearly always" if wins else "takes generated samples for real ones"
    return Evidence(
        f"{outputs.names[0]} is {figure(median(real))} and {outputs.names[1]} {figure(median(generated))} from "
        f"{run.step_name} {figure(outputs.first)} on (medians): the discriminator {what}",
        steps=(outputs.first,),
        values={"real": median(real), "generated": median(generated), "discriminator_wins": float(wins)},
    )


def _sides(run: Run) -> Iterator[tuple[Floats, _Side, _Side]]:
    """Return the losses of each discriminator and its generator, at the steps of the generator's."""
    named = [
        next((one.name for one in run.with_role(quantity, phase="train")), "")
        for quantity in (Quantity.DISCRIMINATOR_LOSS, Quantity.GENERATOR_LOSS)
    ]
    for parts, generator in ((named[:1], named[1]), *_PAIRS):
        if generator not in run or not all(part in run for part in parts):
            continue
        both = [aligned(run[part].finite, run[generator].finite) for part in parts]
        step, _, against = both[0]
        if len(step) < LEAST or any(len(one[0]) != len(step) for one in both):
            continue
        # Of two parts the larger one counts: both real and generated samples have to be recognised.
        own = np.max([value for _, value, _ in both], axis=0)
        yield step, _Side(" and ".join(parts), own), _Side(generator, against)


def _is_gone(later: Floats) -> bool:
    return median(later) < GONE and float(np.quantile(later, 0.9)) < NEARLY_ALWAYS


def _is_beaten(loss: Floats, *, squared: bool) -> bool:
    """Say whether a loss is as high as that of a network that always loses, and does not come down."""
    later = loss[len(loss) // 2 :]
    level = median(later)
    stays = end_level(loss) >= FALLS * min(level, median(loss[: len(loss) // 2]))
    return stays and (level >= HIGH or (squared and bool(np.all(np.abs(later - SQUARED) < NEAR))))
