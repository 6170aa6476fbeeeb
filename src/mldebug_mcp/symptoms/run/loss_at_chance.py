"""Loss ends at that of a uniform guess."""

from __future__ import annotations

import math

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.scale import uniform_loss
from mldebug_mcp.symptoms.statistics import end_level
from mldebug_mcp.text import figure

NEAR = 0.03
"""Within this share of ln(n) the loss is that of a guess. Chosen by hand: unigram statistics of text lie far below."""


@symptom(
    needs=("loss",),
    sources=("karpathy_recipe",),
    points=10,
    not_for=("grpo", "ppo", "rl", "preference"),
    background=0.002,
)
def loss_at_chance(run: Run) -> Evidence | None:
    """The training loss at the end of the log is ln(number of classes or tokens), that of a uniform guess.

    Not this when: the log ends after a few steps; the loss is no cross-entropy. Unknown where neither the number of
    classes nor that of tokens is known, unless it stands still at ln 2.
    """
    loss = run["loss"].finite
    end, uniform = end_level(loss.value), uniform_loss(run)
    if uniform is None:
        if abs(end - math.log(2)) > 0.01:
            raise CannotTell("the number of classes or tokens is not known")
        uniform = math.log(2)
    if abs(end - uniform) > NEAR * uniform:
        return None
    return Evidence(
        f"loss is {figure(end)} at the end, {run.step_name} {figure(float(loss.step[-1]))}; a uniform guess has "
        f"{figure(uniform)} = ln({math.exp(uniform):.0f})",
        steps=(float(loss.step[0]),),
        values={"end": end, "uniform_guess": uniform},
    )
