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

GONE, NEARLY_ALWAYS, SHARE = 0.01, 0.05, 0.9
"""Median below which a loss is gone, and what this share of it is below. Chosen: a discriminator in play is near zero
on single batches alone.
"""
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


class _Side(NamedTuple):
    name: str
    value: Floats


@symptom(
    sources=("ganhacks",),
    background=0.002,
)
def adversarial_loss_one_sided(run: Run) -> Evidence | None:
    """Of a GAN one network has nearly no loss over the later half, beside a high one of the other, or by its outputs.

    Not this when: it is near zero on some batches only; the high one comes down; a Wasserstein critic is below zero.
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
    return median(later) < GONE and float(np.quantile(later, SHARE)) < NEARLY_ALWAYS


def _is_beaten(loss: Floats, *, squared: bool) -> bool:
    """Say whether a loss is as high as that of a network that always loses, and does not come down."""
    later = loss[len(loss) // 2 :]
    level = median(later)
    stays = end_level(loss) >= FALLS * min(level, median(loss[: len(loss) // 2]))
    return stays and (level >= HIGH or (squared and bool(np.all(np.abs(later - SQUARED) < NEAR))))
