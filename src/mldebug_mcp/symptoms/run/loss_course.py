"""How does the training loss go: up, and back, nowhere, or slowly?"""

from __future__ import annotations

from mldebug_mcp.symptoms.forms import NO_PROGRESS
from mldebug_mcp.symptoms.levels import loss_resting, loss_rising, loss_slow
from mldebug_mcp.symptoms.readings import ask_in_turn, reading

LOSS = ("loss",)
ask_in_turn(
    "loss_course",
    reading(
        loss_rising.loss_divergence,
        sources=("bekman_mle",),
        background=0.01,
        follows=("loss_falls_back", "loss_pattern_by_epoch"),
        instead=("logits_grow",),
    ),
    reading(loss_rising.loss_hump, background=0.004, follows=("loss_spike_single",)),
    reading(
        loss_resting.loss_constant,
        needs=LOSS,
        points=loss_resting.SAME,
        background=0.002,
        follows=("loss_negative", "loss_zero"),
        instead=NO_PROGRESS,
    ),
    reading(loss_rising.loss_rises, sources=("small_scale_proxies",), background=0.003, follows=("loss_above_start",)),
    reading(
        loss_slow.loss_slow,
        needs=LOSS,
        sources=("axolotl_stability",),
        points=loss_slow.EPOCHS,
        settled=True,
        not_for=("preference",),
        background=0.01,
        follows=("loss_epoch_steps", "eval_learns_nothing"),
        instead=NO_PROGRESS,
    ),
    reading(
        loss_resting.loss_plateau,
        needs=LOSS,
        sources=("axolotl_stability", "karpathy_recipe"),
        points=6,
        settled=True,
        background=0.006,
        follows=("dpo_margin_flat", "eval_loss_constant"),
        instead=NO_PROGRESS,
    ),
    reading(
        loss_resting.loss_stall,
        needs=LOSS,
        sources=("axolotl_stability", "karpathy_recipe"),
        points=20,
        settled=True,
        not_for=("diffusion",),
        background=0.02,
        instead=NO_PROGRESS,
    ),
    needs=LOSS,
    not_for=("grpo", "ppo", "rl"),
)
