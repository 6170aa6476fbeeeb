"""Where the loss of a language model stands on the scale of its vocabulary."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.forms import NO_PROGRESS
from mldebug_mcp.symptoms.levels.loss_above_guess import loss_above_guess
from mldebug_mcp.symptoms.levels.loss_above_unigram import loss_above_unigram
from mldebug_mcp.symptoms.levels.loss_at_unigram import loss_at_unigram
from mldebug_mcp.symptoms.levels.loss_low_too_soon import loss_low_too_soon
from mldebug_mcp.symptoms.levels.loss_too_low import loss_too_low
from mldebug_mcp.symptoms.readings import first_of, reading
from mldebug_mcp.symptoms.registry import Answers, question

READINGS = (
    reading(
        loss_too_low,
        needs=("loss",),
        sources=("axolotl_stability", "karpathy_recipe"),
        not_for=("supervised",),
        background=0.01,
    ),
    reading(loss_low_too_soon, needs=("loss",), not_for=("sft", "supervised"), background=0.003),
    reading(
        loss_at_unigram,
        needs=("loss",),
        sources=("karpathy_recipe",),
        points=20,
        settled=True,
        not_for=("supervised",),
        background=0.003,
        follows=("loss_plateau", "loss_scale_suspicious"),
        instead=NO_PROGRESS,
    ),
    reading(
        loss_above_unigram,
        needs=("loss",),
        sources=("karpathy_recipe",),
        points=20,
        not_for=("supervised",),
        background=0.001,
        follows=("loss_divergence", "loss_plateau", "loss_scale_suspicious", "loss_slow", "loss_stall"),
        instead=NO_PROGRESS,
    ),
    reading(
        loss_above_guess,
        needs=("loss",),
        sources=("karpathy_recipe",),
        background=0.002,
        follows=("loss_divergence", "loss_nonfinite"),
    ),
)


@question(*(one.outcome for one in READINGS), needs=("loss",), not_for=("grpo", "ppo", "rl", "preference", "diffusion"))
def token_loss(run: Run) -> Answers:
    """Is the loss of a language model lower than text allows, or no lower than the frequencies of tokens give?"""
    return first_of(run, READINGS)
