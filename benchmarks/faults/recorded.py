"""A run of our own set, read back into a story that can be written in any style.

It is read here, and not with the package's reader, so that a mistake of that reader is in the answers and not in the
question. Only the forms that the runs of that set have are read.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tests.restyle.story import OWN, Curve, Quantity, Resume, Setting, Story

Record = dict[str, float]
"""Metrics of a step by name; `step` is one of them."""
GIB = 2.0**30
"""Bytes in the unit that the benchmark logs memory in."""
STEP = ("step", "time/total_timesteps")
SPELLINGS = {"train_loss": "loss", "val_loss": "eval_loss", "val_acc": "eval_accuracy", "lr": "learning_rate"} | {
    "val loss": "eval_loss", "val acc": "eval_accuracy", "val_f1_macro": "eval_f1_macro",
}  # fmt: skip
"""What the table and the text call a metric of the benchmark."""
BOOKKEEPING = re.compile(r"total_flos|time/.*|train/n_updates|.*_(runtime|per_second)")
"""Counters of frameworks, which say nothing of the run."""
WHAT = {
    "grad_norm": "gradient_norm", "data_time": "data_wait", "memory": "device_memory",
    "rollout/ep_rew_mean": "reward", "train/loss": "loss", "train/learning_rate": "learning_rate",
    "train/value_loss": "value_loss", "train/policy_gradient_loss": "policy_loss", "train/approx_kl": "kl",
    "train/clip_fraction": "clip_fraction", "train/explained_variance": "explained_variance",
    "completions/mean_length": "completion_length", "rewards/margins": "reward_margin",
    "rewards/accuracies": "pair_accuracy",
    **{name: name for name in ("loss", "accuracy", "learning_rate", "step_time", "loss_scale", "reward_std")},
}  # fmt: skip
"""The quantity of a story by metric. Others keep their names, and so do those whose synonyms tell another kind."""
SETTINGS = {
    "max_steps": "total_steps", "max_grad_norm": "clipping", "per_device_train_batch_size": "batch_size",
    "num_classes": "classes", "num_labels": "classes", "vocab_size": "vocabulary",
    "gradient_accumulation_steps": "accumulation", "lr_scheduler_type": "schedule",
    **{name: name for name in ("learning_rate", "warmup_steps", "weight_decay", "batch_size", "optimizer")},
}  # fmt: skip
"""The setting of a story by key; any other keeps its own."""
KEYS = {setting: key for key, setting in reversed(SETTINGS.items())} | {"precision": "precision", "betas": "betas"}
"""The key of the benchmark by setting."""
_LINE = re.compile(r"^(?:iter|step) (\d+): (.*)$")


@dataclass(frozen=True, slots=True)
class Recorded:
    """What stands in the folder of a run.

    Args:
        records: In order, under the benchmark's names; without what frameworks count for themselves.
        config: The configuration; empty where none was written.
        last_words: What stands behind the last record.
    """

    records: Sequence[Record]
    config: Mapping[str, object]
    last_words: str = ""


def recorded(folder: Path) -> Recorded:
    """Read the folder of a run."""
    config = folder / "config.json"
    file = next(path for path in sorted(folder.iterdir()) if path != config)
    text, last_words = file.read_text(encoding="utf-8"), ""
    if file.suffix == ".csv":
        rows = [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(text.splitlines())]
    elif file.suffix == ".log":
        rows = list(_printed(text))
        last_words = "\n".join(line for line in text.splitlines() if not _LINE.match(line))
    else:
        rows = [json.loads(line) for line in text.splitlines()] if file.suffix == ".jsonl" else _history(text)
    settings = json.loads(config.read_text(encoding="utf-8")) if config.exists() else {}
    return Recorded([row for row in map(_named, rows) if len(row) > 1], settings, last_words)


def _history(text: str) -> list[Record]:
    history: list[Record] = json.loads(text)["log_history"]
    return history


def _printed(text: str) -> Iterator[Record]:
    for line in text.splitlines():
        if found := _LINE.match(line):
            pairs = (pair.rsplit(" ", 1) for pair in found[2].split(", "))
            yield {"step": float(found[1]), **{name: float(value) for name, value in pairs}}


def _named(row: Mapping[str, float]) -> Record:
    summary = "train_runtime" in row  # the Trainer's last record repeats what was logged before
    kept = {name: value for name, value in row.items() if not (summary and name == "train_loss")}
    step = next(float(kept.pop(name)) for name in STEP if name in kept)
    return {"step": step} | {
        SPELLINGS.get(name, name): float(value)
        for name, value in kept.items()
        if value is not None and not BOOKKEEPING.fullmatch(name)
    }


def story(run: Recorded, name: str) -> Story:
    """Return a run as a story; steps that were made twice are those of a resume.

    Raises:
        ValueError: the run was resumed more than once, which a story cannot tell.
    """
    resumes = _resumes(run.records)
    if len(resumes) > 1:
        raise ValueError(f"{name} was resumed {len(resumes)} times")
    curves: dict[Quantity, dict[int, float]] = {}
    before: dict[Quantity, dict[int, float]] = {}
    for record in run.records:
        for metric, value in record.items():
            if metric not in {"step", "epoch"}:
                quantity, scale = quantity_of(metric)
                curve, step = curves.setdefault(quantity, {}), int(record["step"])
                if step in curve:
                    before.setdefault(quantity, {})[step] = curve[step]
                curve[step] = scale * value
    settings, extra = _settings(run.config)
    return Story(
        name,
        curves,
        settings,
        steps_per_pass(run.records) or 1,
        Resume(*resumes[0], _between(before, *resumes[0])) if resumes else None,
        run.last_words,
        extra,
        finished=False,
    )


def _between(before: Mapping[Quantity, Curve], at: int, back_to: int) -> dict[Quantity, dict[int, float]]:
    return {q: {step: v for step, v in curve.items() if back_to < step <= at} for q, curve in before.items()}


def _resumes(records: Sequence[Record]) -> list[tuple[int, int]]:
    """Return the last step before each fall of the counter, and the step before the first one after it."""
    steps = [int(record["step"]) for record in records if "loss" in record]
    return [(last, first - 1) for last, first in pairwise(steps) if first <= last]


def quantity_of(metric: str) -> tuple[Quantity, float]:
    """Return the quantity of a metric of the benchmark, and what one of its unit is in the story's."""
    phase, bare = ("eval", metric.removeprefix("eval_")) if metric.startswith("eval_") else ("train", metric)
    return (phase, WHAT.get(bare, OWN + bare)), GIB if bare == "memory" else 1.0


def steps_per_pass(records: Sequence[Record]) -> int:
    """Return the steps in one pass over the data; 0 where the log does not say, or they change."""
    ratios = [record["step"] / record["epoch"] for record in records if record.get("epoch", 0) > 0]
    return round(ratios[-1]) if ratios and max(ratios) < 1.02 * min(ratios) and ratios[-1] >= 1 else 0


def _settings(config: Mapping[str, object]) -> tuple[dict[str, Setting], dict[str, object]]:
    given = dict(config)
    settings: dict[str, Setting] = {}
    if {"adam_beta1", "adam_beta2"} <= given.keys():
        settings["betas"] = (_number(given.pop("adam_beta1")), _number(given.pop("adam_beta2")))
    for kind in ("bf16", "fp16"):
        if given.pop(kind, None):
            settings["precision"] = kind
    for key in [key for key in given if key in SETTINGS]:
        value = given.pop(key)
        if isinstance(value, str | int | float | bool):
            settings[SETTINGS[key]] = value
    return settings, given


def _number(value: object) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return float(value)
