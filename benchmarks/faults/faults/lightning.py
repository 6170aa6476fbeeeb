"""Faults of runs by Lightning's Trainer: those of the plain loop that are gross enough to be told from its log."""

from __future__ import annotations

from benchmarks.faults.faults import data, healthy, loss, optimizer, repeated
from benchmarks.faults.faults.fault import Fault, evaluation_below, rate_is_logged

TASKS = ("lightning_tabular", "lightning_sequences")
FAULTS = (
    Fault("lightning_rate_high", "lr_too_high", optimizer.rate_times, (100, 400), TASKS, ("exploding_gradients",)),
    Fault("lightning_rate_low", "lr_too_low", optimizer.rate_times, (0.001,), TASKS, optimizer.FLAT),
    Fault(
        "lightning_schedule_ends_early", "lr_schedule_bug", optimizer.schedule_ends_early, (0.15,), TASKS,
        ("lr_too_low",), shown=rate_is_logged,
    ),
    Fault("lightning_not_in_optimizer", "params_not_training", optimizer.not_in_optimizer, (1,), TASKS, optimizer.FLAT),
    Fault("lightning_clipped_tight", "clip_too_tight", optimizer.clipped_tight, (0.001,), TASKS, optimizer.FLAT),
    Fault("lightning_bad_batch", "bad_batch", data.bad_batch, (10,), TASKS, ("bad_data_pocket",)),
    Fault(
        "lightning_label_noise", "label_noise", data.label_noise, (0.7,), TASKS,
        ("no_signal", "too_little_capacity", "train_eval_mismatch"),
    ),
    Fault(
        "lightning_shuffled_labels", "no_signal", data.shuffled_labels, (1,), TASKS,
        ("label_noise", "lr_too_low", "double_softmax", "params_not_training", "too_little_capacity"),
    ),
    Fault(
        "lightning_overfitting", "overfitting", data.few_examples, (2, 4), TASKS, ("duplicated_data",)
    ),
    Fault("lightning_unshuffled", "unshuffled_data", data.unshuffled, (16,), TASKS, ("bad_data_pocket",)),
    Fault(
        "lightning_evaluation_shifted", "train_eval_mismatch", data.evaluation_shifted, (8,), TASKS,
        ("eval_mode_bug",),
    ),
    Fault("lightning_duplicated", "duplicated_data", repeated.duplicated, (200,), TASKS, ("overfitting",)),
    Fault("lightning_leaked", "train_eval_leakage", repeated.leaked, (24,), TASKS, shown=evaluation_below),
    Fault(
        "lightning_unsafe_log", "invalid_math", loss.unsafe_log, (300,), TASKS, ("exploding_gradients", "fp16_overflow")
    ),
)  # fmt: skip
HEALTHY = (
    Fault("lightning_as_usual", "healthy", healthy.as_usual, (1,), TASKS),
    Fault("lightning_one_cycle", "healthy", healthy.one_cycle, (0.3,), TASKS, seeds=(1,)),
    Fault("lightning_warmup_stable_decay", "healthy", healthy.warmup_stable_decay, (1,), TASKS, seeds=(1,)),
    Fault("lightning_small_batch", "healthy", healthy.small_batch, (4,), TASKS, seeds=(1,)),
    Fault("lightning_hard_examples", "healthy", healthy.hard_examples, (0.3,), TASKS, seeds=(1,)),
    Fault("lightning_wrong_by_nature", "healthy", repeated.wrong_by_nature, (0.2,), TASKS, seeds=(1,)),
)
