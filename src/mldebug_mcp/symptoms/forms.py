"""Symptoms that are forms of one trouble: a run that shows one of them lacks the others for that very reason."""

from __future__ import annotations

NO_PROGRESS = (
    "eval_learns_nothing",
    "loss_at_chance",
    "loss_constant",
    "loss_plateau",
    "loss_slow",
    "loss_stall",
)
NO_REWARD = ("reward_constant", "reward_flat", "reward_zero")
"""Not among them: a policy that stands still, groups without variance. Where these are logged and not the case, that
tells why the reward is what it is."""
