"""What other tools say of a run, and which of our causes that counts as.

The mappings are generous to them. A finding counts as naming every cause that its heading describes or that its text
lists as possible, remedies included; the tool need not say which of these it is.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mldebug_mcp.logs import Run

PACKAGES = ("runmedic==0.1.1", "runwise==0.4.0")
SECONDS = 60

RUNMEDIC: Mapping[str, tuple[str, ...]] = {
    "non_finite": (
        "lr_too_high", "exploding_gradients", "insufficient_warmup", "lr_schedule_bug", "bad_batch", "invalid_math",
        "bad_init", "fp16_overflow", "fp8_zero_scale", "logit_drift", "no_signal",
    ),
    "divergence": (
        "lr_too_high", "lr_schedule_bug", "adam_instability", "weight_decay_too_high", "unshuffled_data",
        "bad_data_pocket", "exploding_gradients", "resume_state_lost",
    ),
    "loss_spikes": (
        "bad_batch", "bad_data_pocket", "label_noise", "lr_too_high", "insufficient_warmup", "exploding_gradients",
        "adam_instability",
    ),
    "no_learning": (
        "lr_schedule_bug", "params_not_training", "lr_too_low", "no_signal", "missing_zero_grad", "label_shift_error",
        "vanishing_gradients", "dead_units", "wrong_loss", "double_softmax", "class_imbalance", "all_labels_masked",
    ),
    "overfitting": ("overfitting", "duplicated_data", "too_little_capacity"),
    "val_below_train": ("train_eval_leakage", "train_eval_mismatch", "eval_mode_bug", "duplicated_data"),
    "grad_spikes": ("lr_too_high", "insufficient_warmup", "exploding_gradients", "logit_drift", "bad_batch"),
    "constant_lr_plateau": ("lr_schedule_bug", "lr_too_high"),
    "input_bound": ("dataloader_bottleneck", "batch_too_small"),
    "slow_steps": ("dataloader_bottleneck", "throughput_degradation", "hardware_fault", "fragmentation"),
    "slowdown": ("throughput_degradation", "memory_leak", "hardware_fault"),
    "memory_growth": ("memory_leak", "fragmentation"),
    "log:cuda_oom": ("out_of_memory", "fragmentation", "memory_leak"),
    "log:dataloader_killed": ("out_of_memory",),
    "log:amp_overflow": ("fp16_overflow", "lr_too_high", "exploding_gradients"),
    "log:anomaly_nan": ("exploding_gradients", "invalid_math", "fp16_overflow"),
    "log:nccl_timeout": ("hang", "hardware_fault"),
}  # fmt: skip
"""By the id of a check of runmedic; other messages of a log that it knows name none of our causes."""

RUNWISE: Mapping[str, tuple[str, ...]] = {
    "nan": RUNMEDIC["non_finite"],
    "spike": RUNMEDIC["loss_spikes"],
    "overfit": RUNMEDIC["overfitting"],
    "plateau": (*RUNMEDIC["no_learning"], *RUNMEDIC["constant_lr_plateau"], "too_little_capacity", "label_noise"),
    "gradient": ("exploding_gradients", "vanishing_gradients", "dead_units", *RUNMEDIC["grad_spikes"]),
    "system": RUNMEDIC["slowdown"],
}
"""By the type of an anomaly of runwise, which lists no causes: those of runmedic's finding of that name, and more."""

_RUNWISE_NAMES = {"loss": "loss", "eval_loss": "val_loss", "grad_norm": "grad_norm"}
_RUNWISE = """
import json, sys
from runwise.anomalies import detect_anomalies
rows = json.load(sys.stdin)
print(json.dumps([one.type for one in detect_anomalies(rows)]))
"""


@dataclass(frozen=True)
class Said:
    """What a tool says of a run.

    Args:
        findings: For each of its findings, in its order, the causes that it counts as.
        alarm: Whether it says that something is wrong; a remark that it marks as information is no alarm.
    """

    findings: tuple[tuple[str, ...], ...]
    alarm: bool


def runmedic(python: Path, _: Run, log: Path) -> Said | None:
    """Return what runmedic says of a log, None if it cannot read it. Its own reader is used."""
    done = _call([str(python), "-m", "runmedic", "diagnose", "--json", str(log)])
    runs = json.loads(done) if done.strip() else []
    if not runs or not any(one["series"] for one in runs):
        return None
    found = [finding for one in runs for finding in one["findings"]]
    alarm = any(one["severity"] in ("warning", "critical") for one in found)
    return Said(tuple(RUNMEDIC.get(one["check"], ()) for one in found), alarm)


def runwise(python: Path, run: Run, _: Path) -> Said | None:
    """Return what runwise's detector says of a run, None if it fails.

    It looks for anomalies in folders of W&B only, so that it is handed what our reader read, under the names that it
    looks for.
    """
    rows: dict[float, dict[str, float]] = {}
    for ours, theirs in _RUNWISE_NAMES.items():
        for step, value in zip(run[ours].step, run[ours].value, strict=True) if ours in run else ():
            rows.setdefault(float(step), {"step": float(step)})[theirs] = float(value)
    if "step_time" in run:
        durations = run["step_time"]
        for step, rate in zip(durations.step, 1 / np.maximum(durations.value, 1e-9), strict=True):
            rows.setdefault(float(step), {"step": float(step)})["steps_per_sec"] = float(rate)
    done = _call([str(python), "-c", _RUNWISE], json.dumps([rows[step] for step in sorted(rows)]))
    if not done.strip():
        return None
    kinds = json.loads(done)
    return Said(tuple(RUNWISE.get(kind, ()) for kind in kinds), alarm=bool(kinds))


TOOLS: Mapping[str, Callable[[Path, Run, Path], Said | None]] = {"runmedic": runmedic, "runwise": runwise}


def lacking(python: Path, tool: str) -> bool:
    """Say whether a tool is not installed for this interpreter."""
    return not _call([str(python), "-c", f"import importlib.metadata as m; print(m.version({tool!r}))"]).strip()


def _call(command: list[str], text: str = "") -> str:
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
