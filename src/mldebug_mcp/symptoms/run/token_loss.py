"""Is the loss of a language model lower than text allows, or no lower than the frequencies of tokens give?"""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.forms import NO_PROGRESS
from mldebug_mcp.symptoms.levels import token_level
from mldebug_mcp.symptoms.readings import first_of, reading
from mldebug_mcp.symptoms.registry import Answers, question

LOSS = ("loss",)
READINGS = (
    reading(
        token_level.loss_too_low,
        needs=LOSS,
        sources=("axolotl_stability", "karpathy_recipe"),
        not_for=("supervised",),
        background=0.01,
    ),
    reading(
        token_level.loss_at_unigram,
        needs=LOSS,
        sources=("karpathy_recipe",),
        points=20,
        settled=True,
        not_for=("supervised",),
        background=0.003,
        follows=("loss_divergence", "loss_plateau", "loss_scale_suspicious", "loss_slow"),
        instead=NO_PROGRESS,
    ),
    reading(
        token_level.loss_above_guess,
        needs=LOSS,
        sources=("karpathy_recipe",),
        background=0.002,
        follows=("loss_divergence", "loss_nonfinite"),
    ),
)
"""How each outcome is seen, of how many values, and how often a healthy run shows it. Chosen: the fit counts the
backgrounds anew."""


@question(*(one.outcome for one in READINGS), needs=LOSS, not_for=("grpo", "ppo", "rl", "preference", "diffusion"))
def token_loss(run: Run) -> Answers:
    """Is the loss of a language model lower than text allows, or no lower than the frequencies of tokens give?"""
    return first_of(run, READINGS)
