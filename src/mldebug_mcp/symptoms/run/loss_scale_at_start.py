"""On what scale the loss is, and where it begins."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.levels.initial_loss_high import initial_loss_high
from mldebug_mcp.symptoms.levels.initial_loss_low import initial_loss_low
from mldebug_mcp.symptoms.levels.loss_scale_suspicious import loss_scale_suspicious
from mldebug_mcp.symptoms.readings import first_of, reading
from mldebug_mcp.symptoms.registry import Answers, question

READINGS = (
    reading(
        loss_scale_suspicious,
        needs=("loss",),
        sources=("hf_gradacc_blog", "karpathy_recipe"),
        background=0.005,
        instead=("train_far_above_eval",),
    ),
    reading(
        initial_loss_high,
        needs=("loss",),
        sources=("karpathy_recipe", "cs231n_nn3"),
        not_for=("preference",),
        background=0.006,
    ),
    reading(
        initial_loss_low,
        needs=("loss",),
        sources=("karpathy_recipe", "axolotl_stability", "opt_175b_logbook"),
        not_for=("preference",),
        background=0.01,
    ),
)


@question(*(one.outcome for one in READINGS), needs=("loss",), not_for=("grpo", "ppo", "rl", "diffusion"))
def loss_scale_at_start(run: Run) -> Answers:
    """Is the loss a multiple of what it should be, or does it begin far from where it should?"""
    return first_of(run, READINGS)
