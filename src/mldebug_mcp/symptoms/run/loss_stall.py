"""Progress, then stuck well above where it should be."""

from __future__ import annotations

import math

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.scale import LANGUAGE_MODELS, uniform_loss
from mldebug_mcp.measure.stall import HIGH_SHARE, stalled
from mldebug_mcp.symptoms.forms import NO_PROGRESS
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.terms import refuse_new_terms
from mldebug_mcp.text import figure


@symptom(
    needs=("loss",),
    sources=("axolotl_stability", "karpathy_recipe"),
    points=20,
    settled=True,
    not_for=("grpo", "ppo", "rl", "diffusion"),
    background=0.02,
    follows=("loss_at_unigram", "loss_plateau"),
    instead=NO_PROGRESS,
)
def loss_stall(run: Run) -> Evidence | None:
    """The training loss falls at first, then stops, still near what a guess by frequency would give.

    Not this when: the loss is low already (it is done); the learning rate has decayed; it never fell
    (`loss_plateau`). Where it should be is known only if the number of classes or tokens is; the shares were chosen
    by hand.
    """
    refuse_new_terms(run)
    stall = stalled(run["loss"].finite)
    if stall is None:
        return None
    uniform = uniform_loss(run)
    if uniform is None:
        if run.kind in LANGUAGE_MODELS or stall.end < 0.6:
            return None
        raise CannotTell(
            "the loss does not move, but without the number of classes or tokens it is not known where it should be"
        )
    if stall.end < HIGH_SHARE * uniform:
        return None
    return Evidence(
        f"loss falls from {figure(stall.start)} to {figure(stall.end)} by {run.step_name} {figure(stall.onset)} and "
        f"moves by no more than {figure(stall.moved)} after; a uniform guess has {figure(uniform)} = "
        f"ln({math.exp(uniform):.0f})",
        steps=(stall.onset,),
        values={
            "start": stall.start,
            "end": stall.end,
            "moved_in_second_half": stall.moved,
            "uniform_guess": uniform,
        },
    )
