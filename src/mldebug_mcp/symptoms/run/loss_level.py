"""Where does the training loss stand, beside what it can be?"""

from __future__ import annotations

from mldebug_mcp.symptoms.forms import NO_PROGRESS
from mldebug_mcp.symptoms.levels import loss_by_accuracy, loss_by_guess, loss_exact, loss_scale_suspicious
from mldebug_mcp.symptoms.readings import ask_in_turn, reading

LOSS = ("loss",)
POLICIES = ("grpo", "ppo", "rl")
NOT_CLASSES = (*POLICIES, "preference", "diffusion")
ask_in_turn(
    "loss_level",
    reading(
        loss_exact.loss_huge, needs=LOSS, sources=("axolotl_stability",), background=0.002, follows=("loss_nonfinite",)
    ),
    reading(loss_exact.loss_drops_to_zero, needs=LOSS, points=2, not_for=(*POLICIES, "preference"), background=0.001),
    reading(loss_exact.loss_zero, needs=LOSS, sources=("unsloth_faq",), not_for=POLICIES, background=0.002),
    reading(loss_exact.loss_negative, needs=LOSS, points=5, not_for=(*POLICIES, "diffusion"), background=0.01),
    reading(
        loss_by_accuracy.loss_at_softmax_floor,
        needs=LOSS,
        points=4,
        not_for=(*NOT_CLASSES, "boosting"),
        background=0.003,
        follows=("loss_falls_back", "loss_nonfinite"),
    ),
    reading(
        loss_by_guess.loss_at_chance,
        needs=LOSS,
        sources=("karpathy_recipe",),
        points=4,
        settled=True,
        not_for=(*POLICIES, "preference"),
        background=0.002,
        follows=("eval_loss_constant",),
        instead=NO_PROGRESS,
    ),
    reading(
        loss_by_accuracy.loss_above_accuracy,
        needs=LOSS,
        points=4,
        not_for=NOT_CLASSES,
        follows=("loss_falls_back", "train_lags_eval"),
    ),
    reading(
        loss_by_accuracy.loss_below_accuracy,
        needs=LOSS,
        points=loss_by_accuracy.LEAST,
        not_for=(*POLICIES, "preference", "pretraining", "sft"),
        background=0.003,
    ),
    reading(loss_scale_suspicious.terms_outweigh, needs=LOSS, points=4, not_for=POLICIES, background=0.002),
    reading(
        loss_by_guess.loss_at_collapse,
        sources=("triplet_reid_issue_30",),
        not_for=(*POLICIES, "preference"),
        background=0.002,
    ),
)
