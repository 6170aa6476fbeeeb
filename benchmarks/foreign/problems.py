"""Which causes a word for a problem allows: those that practitioners name for it. `unknown` where none of ours does."""

from __future__ import annotations

from collections.abc import Mapping

_NONFINITE = (
    "invalid_math", "fp16_overflow", "fp8_zero_scale", "exploding_gradients", "lr_too_high", "insufficient_warmup",
    "bad_batch", "bad_init", "adam_instability",
)  # fmt: skip
_JUMPED = (
    "lr_too_high", "insufficient_warmup", "adam_instability", "exploding_gradients", "logit_drift", "bad_batch",
    "bad_data_pocket", "hardware_fault",
)  # fmt: skip
_STUCK = (
    "no_signal", "params_not_training", "lr_too_low", "lr_too_high", "vanishing_gradients", "dead_units", "wrong_loss",
    "double_softmax", "label_noise", "too_little_capacity", "class_imbalance",
)  # fmt: skip

CAUSES: Mapping[str, tuple[str, ...]] = {
    "overfitting": ("overfitting", "duplicated_data"),
    "isolated_nan_grad_norm": ("healthy", *_NONFINITE),  # a skipped step, harmless by itself
    "plateau_no_learning": _STUCK,
    "no_learning_chance_level": _STUCK,
    "completions_truncated": ("completion_limit_low", "length_exploitation", "tokenizer_mismatch"),
    "loss_spike": _JUMPED,
    "loss_spike_divergence": _JUMPED,
    "dataloader_shm_bus_error": ("out_of_memory", "hardware_fault"),
    "hardware_gpu_fault": ("hardware_fault",),
    "crash_traceback": ("unknown", "metric_bug"),
    "config_error": ("unknown",),
    "encoding_crash": ("unknown",),
    "device_side_assert": ("labels_out_of_range", "tokenizer_mismatch", "label_shift_error", "metric_bug"),
    "cuda_oom": ("out_of_memory",),
    "cuda_oom_fragmentation": ("fragmentation",),
    "loss_rising_after_resume": ("resume_state_lost", "resume_data_replayed", "lr_schedule_bug"),
    "loss_jump_after_resume": ("resume_state_lost", "resume_data_replayed", "tokenizer_mismatch"),
    "gan_discriminator_dominates": ("adversarial_imbalance", "unknown", "wrong_loss"),
    "explained_variance_nan": ("healthy", "batch_too_small", "value_instability"),  # of a tiny rollout: no fault
    "kl_spike_entropy_collapse": ("kl_blowup", "entropy_collapse", "lr_too_high"),
    "kl_negative": ("tokenizer_mismatch", "kl_blowup", "off_policy_staleness", "reward_hacking"),
    "lr_too_low": ("lr_too_low",),
    "nan_loss": _NONFINITE,
    "val_loss_nan": (*_NONFINITE, "metric_bug", "eval_mode_bug"),
    "nan_grad_norm": (*_NONFINITE, "all_labels_masked"),
    "nan_weights_fp16_underflow": ("fp16_overflow", "low_precision_update", "adam_instability"),
    "fp16_overflow": ("fp16_overflow",),
    "fp16_overflow_startup": ("fp16_overflow", "healthy"),  # a scaler that begins too high, by design
    "fp16_unscale_error": ("fp16_overflow",),
    "zero_loss_all_labels_masked": ("all_labels_masked", "tokenizer_mismatch"),
    "nccl_timeout": ("hang", "hardware_fault"),
    "loss_scaled_by_grad_accum": ("grad_accum_scaling",),
    "grpo_zero_reward_variance": ("no_reward_variance", "reward_broken", "entropy_collapse"),
}
