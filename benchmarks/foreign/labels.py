"""Folders of logs that others labelled, and what is right for each log.

An `index.jsonl` or `labels.jsonl` names each log, one object per line. An object has `file`, relative to the folder, or
`id`, a folder in `runs`. Its `half` is `open` or `closed`: a closed log is scored and never looked into, so that its
score tells how good an answer is on logs that nobody wrote code for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

INDEXES = ("index.jsonl", "labels.jsonl")
OPEN, CLOSED = "open", "closed"


@dataclass(frozen=True)
class Labelled:
    """A log or run folder, and the object that its index has for it."""

    name: str
    path: Path
    folder: str
    half: str
    label: Mapping[str, Any]

    @property
    def column(self) -> str:
        """The column of a table that it counts in: its folder's name, and its half if the index tells one."""
        return f"{self.folder} {self.half}".strip()

    @property
    def shown(self) -> bool:
        """Whether its details may be shown."""
        return self.half != CLOSED


def labelled(folder: Path, *, closed: bool) -> list[Labelled]:
    """Return the labelled logs of a folder, those of the closed half only if asked for.

    Raises:
        SystemExit: the folder has no index, or one that cannot be read; the message says which line.
    """
    index = next((folder / name for name in INDEXES if (folder / name).is_file()), None)
    if index is None:
        raise SystemExit(f"{folder}: no {' or '.join(INDEXES)} in it; name a folder of labelled logs")
    lines = enumerate(index.read_text(encoding="utf-8").splitlines(), 1)
    ones = [_labelled(folder, line, f"{index}, line {number}") for number, line in lines if line.strip()]
    return [one for one in ones if closed or one.shown]


def _labelled(folder: Path, line: str, where: str) -> Labelled:
    try:
        label = json.loads(line)
        name = label["file"] if "file" in label else f"runs/{label['id']}"
        half = label.get("half", "")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SystemExit(f"{where}: not an object with `file` or `id` ({error})") from None
    if half not in ("", OPEN, CLOSED):
        raise SystemExit(f"{where}: half is {half!r}; it may be {OPEN!r}, {CLOSED!r} or left out")
    return Labelled(name, folder / name, folder.resolve().name, half, label)


def columns(ones: Sequence[Labelled]) -> list[str]:
    """Return the columns that some logs count in, in the order in which they occur."""
    return list(dict.fromkeys(one.column for one in ones))


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


HEALTHY, UNKNOWN = "healthy", "unknown"


@dataclass(frozen=True)
class Truth:
    """What a label says.

    Args:
        right: The causes that are right; `healthy` where nothing is wrong, `unknown` where no known cause is right.
        near: Further causes that a reader of the log would not blame.
        healthy: Nothing is wrong with the run.
    """

    right: frozenset[str]
    near: frozenset[str] = frozenset()
    healthy: bool = False


SOUND = Truth(frozenset({HEALTHY}), healthy=True)


def truth(one: Labelled) -> Truth | None:
    """Return what is right for a log; None where its label leaves that open.

    Raises:
        SystemExit: the label has none of the known forms, or a word for a problem that has no causes yet.
    """
    label = one.label
    if "cause" in label:
        injected = frozenset(label["cause"])
        return SOUND if injected == {HEALTHY} else Truth(injected | frozenset(label.get("acceptable", ())))
    if "fault" in label:
        injected = frozenset([label["fault"]])
        return SOUND if injected == {HEALTHY} else Truth(injected | frozenset(label.get("acceptable_causes", ())))
    if "label_kind" in label:
        if label["label_kind"] == HEALTHY:
            return SOUND
        right = frozenset(label["right"])
        return Truth(right, frozenset(label.get("near", ()))) if right else None
    problem = str(label.get("known_problem"))
    if problem in (HEALTHY, UNKNOWN):
        return SOUND if problem == HEALTHY else None
    if problem not in CAUSES:
        raise SystemExit(f"{one.name}: no label that is known; add the causes of {problem!r} to foreign/labels.py")
    return Truth(frozenset(CAUSES[problem]))
