"""Which causes a setting suggests that is not as it usually is: in good runs, in siblings, or in a reference run."""

from __future__ import annotations

from collections.abc import Mapping

FAULTS: Mapping[tuple[str, int], tuple[str, ...]] = {
    ("learning_rate", +1): ("lr_too_high",),
    ("learning_rate", -1): ("lr_too_low",),
    ("warmup_steps", -1): ("insufficient_warmup",),
    ("warmup_ratio", -1): ("insufficient_warmup",),
    ("max_steps", -1): ("lr_schedule_bug",),
    ("lr_scheduler_type", 0): ("lr_schedule_bug",),
    ("weight_decay", +1): ("weight_decay_too_high",),
    ("max_grad_norm", -1): ("clip_too_tight",),
    ("max_grad_norm", +1): ("exploding_gradients",),
    ("per_device_train_batch_size", -1): ("batch_too_small",),
    ("gradient_accumulation_steps", -1): ("batch_too_small",),
    ("gradient_accumulation_steps", +1): ("grad_accum_scaling",),
    ("adam_beta2", +1): ("adam_instability",),
    ("adam_epsilon", -1): ("adam_instability",),
    ("fp16", 0): ("fp16_overflow",),
    ("bf16", 0): ("fp16_overflow", "low_precision_update"),
    ("beta", -1): ("kl_blowup", "dpo_collapse"),
    ("num_generations", -1): ("no_reward_variance",),
    ("max_completion_length", -1): ("completion_limit_low", "reward_broken"),
    ("init_scale", +1): ("bad_init",),
    ("init_scale", -1): ("bad_init", "vanishing_gradients"),
    ("momentum", +1): ("lr_too_high",),
    ("shuffle", -1): ("unshuffled_data",),
    ("hidden_size", -1): ("too_little_capacity",),
    ("planned_passes", +1): ("overfitting", "duplicated_data"),
    ("temperature", -1): ("no_reward_variance", "entropy_collapse"),
    ("temperature", +1): ("kl_blowup",),
    ("clip_range", +1): ("kl_blowup",),
    ("vf_coef", +1): ("value_instability",),
    ("buffer_size", -1): ("value_instability",),
    ("ent_coef", -1): ("entropy_collapse", "exploration_failure"),
}
"""The causes that a setting suggests if it is higher (+1), lower (-1) or just different (0) than usual."""


def faults_of(setting: str, direction: int) -> tuple[str, ...]:
    """Return the causes that a setting suggests that is higher (+1) or lower (-1) than usual, or another (0)."""
    of_any = FAULTS.get((setting, 0), ())
    return (*FAULTS.get((setting, direction), ()), *of_any) if direction else of_any
