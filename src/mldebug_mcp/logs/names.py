"""The one table of metric names: canonical name ← spellings.

Canonical names are those of the Hugging Face Trainer (`loss`, `eval_loss`, `grad_norm`, `learning_rate`, `epoch`,
`step`) and of TRL for preference optimisation and RL. To teach the readers a new spelling, add it here; nothing else
needs to change.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Spellings are written as `_normal` makes them: lower case, runs of spaces and hyphens as one underscore. Earlier
# spellings win where a record has several.
SPELLINGS: dict[str, tuple[str, ...]] = {
    "step": (
        "step", "global_step", "_step", "train/global_step", "trainer/global_step", "global_steps", "current_steps",
        "iteration", "iter", "iters", "update", "num_updates", "train_steps", "training_step", "train_step",
        "optimizer_step", "steps", "batch_idx",
    ),
    "epoch": ("epoch", "train/epoch", "epochs", "current_epoch", "progress/epoch", "num_epoch"),
    "loss": (
        "loss", "train/loss", "train_loss", "training_loss", "loss/train", "lm_loss", "train_loss_step", "loss_step",
        "tr_loss", "total_loss", "loss/total", "train/total_loss", "train/lm_loss", "train/ce_loss", "lm_loss_value",
        "train/loss_step", "actor/loss", "train_loss_epoch", "train/loss_epoch", "loss_epoch", "loss:sum",
        "loss/global_avg_loss", "loss_metrics/global_avg_loss", "metrics/train/loss", "losses/total_loss",
        "loss/train/total",
    ),
    "eval_loss": (
        "eval_loss", "eval/loss", "val_loss", "validation_loss", "valid_loss", "val/loss", "valid/loss",
        "validation/loss", "loss/val", "loss/valid", "loss/eval", "test_loss", "test/loss", "dev_loss",
        "lm_loss_validation", "eval/lm_loss", "val_loss_epoch", "validation_loss_epoch", "metrics/eval/loss",
    ),
    "grad_norm": (
        "grad_norm", "train/grad_norm", "gradient_norm", "global_grad_norm", "grad_norm/total", "gnorm", "grads/norm",
        "norm", "train/grad_norm_step", "grad_norm_total", "total_grad_norm", "grad/norm", "optimizer/grad_norm",
        "grad_2.0_norm_total", "optim/total_grad_norm", "train/global_gradient_norm", "actor/grad_norm",
        "l2_norm/grad/global",
    ),
    "learning_rate": (
        "learning_rate", "lr", "train/learning_rate", "train/lr", "lr/group0", "lr_group0", "optim/lr", "lr/pg0",
        "lr_adamw", "lr_adam", "optimizer/lr", "actor/lr", "optim/learning_rate_group0", "lr_abs", "train_lr",
    ),
    "loss_scale": ("loss_scale", "train/loss_scale", "grad_scale", "scaler_scale", "loss_scaler", "train/loss_scaler"),
    "skipped_iterations": ("number_of_skipped_iterations", "skipped_iterations", "skipped"),
    "nan_iterations": ("number_of_nan_iterations", "nan_iterations"),
    "accuracy": (
        "accuracy", "acc", "train/accuracy", "train_accuracy", "train_acc", "train/acc", "train_acc_epoch",
        "train_acc_step",
    ),
    "eval_accuracy": (
        "eval_accuracy", "eval/accuracy", "val_accuracy", "val_acc", "valid_acc", "validation_accuracy", "test_acc",
        "test_accuracy", "val/accuracy", "eval_acc",
    ),
    "mean_token_accuracy": ("mean_token_accuracy", "train/mean_token_accuracy"),
    "entropy": (
        "entropy", "train/entropy", "policy_entropy", "actor/entropy", "actor/entropy_loss", "objective/entropy",
        "policy/entropy",
    ),
    "kl": ("kl", "train/kl", "objective/kl", "actor/kl_loss", "policy/kl", "mean_kl", "kl_div"),
    "approx_kl": (
        "approx_kl", "train/approx_kl", "losses/approx_kl", "approxkl", "policy/approxkl_avg", "actor/ppo_kl",
        "approx_kl_mean",
    ),
    "reward": (
        "reward", "train/reward", "rollout/ep_rew_mean", "ep_rew_mean", "eprewmean", "averageepret", "episode_reward",
        "mean_reward", "charts/episodic_return", "episodic_return", "env/reward_mean", "objective/scores",
        "critic/rewards/mean", "ep_reward_mean",
    ),
    "reward_std": ("reward_std", "train/reward_std", "env/reward_std"),
    "frac_reward_zero_std": ("frac_reward_zero_std", "train/frac_reward_zero_std"),
    "completion_length": (
        "completions/mean_length", "completion_length", "train/completions/mean_length", "response_length/mean",
        "train/completion_length",
    ),
    "completions/clipped_ratio": (
        "completions/clipped_ratio", "train/completions/clipped_ratio", "response_length/clip_ratio",
    ),
    "clip_ratio": (
        "clip_ratio/region_mean", "clip_ratio", "train/clip_ratio", "train/clip_fraction", "clip_fraction",
        "losses/clipfrac", "policy/clipfrac_avg", "actor/pg_clipfrac", "train/clip_ratio/region_mean", "clipfrac",
    ),
    "policy_ratio": ("val/ratio",),
    "value_loss": (
        "value_loss", "train/value_loss", "losses/value_loss", "loss/value_avg", "critic/vf_loss", "lossv", "lossq",
        "train/critic_loss", "critic_loss", "vf_loss",
    ),
    "policy_loss": (
        "policy_gradient_loss", "train/policy_gradient_loss", "losses/policy_loss", "actor/pg_loss", "losspi",
        "policy_loss", "train/actor_loss", "loss/policy_avg",
    ),
    "explained_variance": ("explained_variance", "train/explained_variance", "losses/explained_variance"),
    "rewards/chosen": ("rewards/chosen", "train/rewards/chosen"),
    "rewards/rejected": ("rewards/rejected", "train/rewards/rejected"),
    "rewards/margins": ("rewards/margins", "train/rewards/margins"),
    "rewards/accuracies": ("rewards/accuracies", "train/rewards/accuracies"),
    "logps/chosen": ("logps/chosen", "train/logps/chosen"),
    "logps/rejected": ("logps/rejected", "train/logps/rejected"),
    "num_tokens": ("num_tokens", "train/num_tokens", "num_input_tokens_seen", "tokens_seen", "consumed_tokens"),
    "step_time": (
        "step_time", "iter_time", "time_per_step", "elapsed_time_per_iteration_(ms)", "dt", "step_time_ms",
        "train/step_time", "batch_time", "time/step", "timing_s/step",
    ),
    "data_time": ("data_time", "data_wait", "train/data_time", "time/data", "data_loading_time"),
    "memory": (
        "memory", "gpu_mem", "memory/max_reserved(gib)", "max_memory_allocated", "gpu_memory", "memory_gb",
        "peak_memory", "mem", "system/gpu.0.memoryallocated", "memory/max_active(gib)",
    ),
}  # fmt: skip

_CANONICAL = {spelling: name for name, spellings in SPELLINGS.items() for spelling in spellings}
RANK = {spelling: rank for spellings in SPELLINGS.values() for rank, spelling in enumerate(spellings)}
"""Where two spellings of one metric stand in one log, the lower rank is the metric and the other keeps its own name."""

_EVALUATION = re.compile(r"(?:eval|val|valid|validation|dev|test)[/_](?=.)")
_TRAINING = re.compile(r"(?:train|training)[/](?=.)")


def normal(name: str) -> str:
    """Return a spelling as the table has it: lower case, spaces and hyphens as underscores."""
    return re.sub(r"[\s\-]+", "_", name.strip().lower()) if not name.islower() or " " in name or "-" in name else name


@lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """Return the canonical name of a metric, or its own name if the table does not know it.

    `val/f1`, `valid_f1` and `test/f1` become `eval_f1`; `train/x` becomes `x`.
    """
    spelling = normal(name)
    if spelling in _CANONICAL:
        return _CANONICAL[spelling]
    evaluation = _EVALUATION.match(spelling)
    if evaluation:
        return "eval_" + spelling[evaluation.end() :]
    training = _TRAINING.match(spelling)
    if training:
        return spelling[training.end() :]
    return name.strip()


def rank(name: str) -> int:
    """Return how close a spelling is to its canonical name; 0 is closest."""
    return RANK.get(normal(name), len(SPELLINGS))
