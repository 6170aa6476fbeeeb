"""Symptoms that are forms of one trouble: a run that shows one of them lacks the others for that very reason."""

from __future__ import annotations

NO_PROGRESS = (
    "eval_learns_nothing",
    "loss_at_chance",
    "loss_at_unigram",
    "loss_constant",
    "loss_plateau",
    "loss_slow",
    "loss_stall",
)
NO_REWARD = ("policy_stands_still", "reward_constant", "reward_flat", "reward_std_zero", "reward_zero")
