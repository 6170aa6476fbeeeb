"""Which columns decide about a cause: a log that lost one of them cannot be held to show it.

A cause that is not listed is told by the losses, of training and evaluation. What is listed comes on top. Where any of
several columns will do, they stand in one group. In runs of policies and of pairs every column may decide.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tests.restyle.story import OWN, Quantity

Group = frozenset[str]
SETTINGS = "settings"
PASSES = "passes"

_GRADIENT = (frozenset({"train/gradient_norm"}),)
_RATE = (frozenset({"train/learning_rate", SETTINGS}),)
_TOLD = (frozenset({SETTINGS}),)
_ACCURACY = (frozenset({"eval/accuracy"}),)
_PASSES = (frozenset({PASSES, SETTINGS}),)
_CLOCK = (frozenset({"train/step_time"}),)
_MEMORY = (frozenset({"train/device_memory"}),)
_BY_CLASS = (frozenset({f"eval/{OWN}f1_macro"}), frozenset({f"eval/{OWN}recall_0"}), *_ACCURACY)
DECIDING: Mapping[str, tuple[Group, ...]] = {
    "adam_instability": (*_GRADIENT, *_TOLD),
    "bad_batch": _GRADIENT,
    "bad_data_pocket": _GRADIENT,
    "bad_init": _GRADIENT,
    "batch_too_small": _TOLD,
    "class_imbalance": _BY_CLASS,
    "clip_too_tight": (*_GRADIENT, *_TOLD),
    "dataloader_bottleneck": (frozenset({"train/data_wait"}), *_CLOCK),
    "dead_units": _GRADIENT,
    "duplicated_data": (*_PASSES, *_ACCURACY),
    "eval_mode_bug": _ACCURACY,
    "exploding_gradients": _GRADIENT,
    "fp16_overflow": (*_GRADIENT, frozenset({"train/loss_scale"}), *_TOLD),
    "fp8_zero_scale": (*_GRADIENT, *_TOLD),
    "grad_accum_scaling": (*_GRADIENT, *_TOLD),
    "hardware_fault": _CLOCK,
    "insufficient_warmup": (*_GRADIENT, *_RATE),
    "label_noise": _ACCURACY,
    "logit_drift": (frozenset({f"train/{OWN}logits/max"}), frozenset({f"train/{OWN}log_z"})),
    "low_precision_update": (*_GRADIENT, *_TOLD),
    "lr_schedule_bug": (frozenset({"train/learning_rate"}), *_TOLD),
    "lr_too_high": (*_GRADIENT, *_RATE),
    "lr_too_low": (*_GRADIENT, *_RATE),
    "memory_leak": _MEMORY,
    "metric_bug": _ACCURACY,
    "missing_zero_grad": _GRADIENT,
    "no_signal": (*_GRADIENT, *_ACCURACY),
    "fragmentation": _MEMORY,
    "overfitting": (*_PASSES, *_ACCURACY),
    "params_not_training": _GRADIENT,
    "prompt_not_masked": _ACCURACY,
    "throughput_degradation": _CLOCK,
    "train_eval_leakage": (*_PASSES, *_ACCURACY),
    "train_eval_mismatch": _ACCURACY,
    "vanishing_gradients": _GRADIENT,
    "weight_decay_too_high": (*_TOLD, *_GRADIENT),
    "wrong_loss": _ACCURACY,
}
"""Beside the losses, by cause: groups of columns of which a log needs one each, if the whole log has it."""
BRIEF = frozenset(
    {"adam_instability", "bad_batch", "bad_data_pocket", "hardware_fault", "invalid_math", "missing_value"}
    | {"fp16_overflow", "fp8_zero_scale", "lr_schedule_bug", "resume_data_replayed", "resume_state_lost"}
)
"""Causes that show in a few records, which a longer interval may leave out."""
_LOSSES = (frozenset({"train/loss"}), frozenset({"eval/loss"}))


def still_shown(cause: str, before: Collection[str], after: Collection[str], also: Collection[str] = ()) -> bool:
    """Say whether a version of a log can still show what the whole log shows.

    Args:
        cause: The injected cause.
        before: What the whole log has, as `columns` names it.
        after: What the version has.
        also: Further columns that decide about this run.
    """
    groups = (*_LOSSES, *DECIDING.get(cause, ()), *(frozenset({name}) for name in also))
    return all(group & set(after) for group in groups if group & set(before))


def columns(quantities: Collection[Quantity], *, settings: bool, passes: bool) -> set[str]:
    """Name what a log has: quantities as "train/loss", and whether it has settings and passes over the data."""
    told = {SETTINGS} if settings else set()
    return {"/".join(quantity) for quantity in quantities} | told | ({PASSES} if passes else set())
