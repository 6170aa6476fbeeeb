"""What a reader found against what was written. Knows the reader's public result, and nothing of how it comes about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs import Run
from mldebug_mcp.logs import Series as Read
from tests.restyle.story import Quantity
from tests.restyle.words import DIMENSION
from tests.restyle.write import Series, Written

CANONICAL: Mapping[Quantity, tuple[str, ...]] = {
    ("train", "loss"): ("loss",),
    ("eval", "loss"): ("eval_loss",),
    ("train", "accuracy"): ("accuracy",),
    ("eval", "accuracy"): ("eval_accuracy",),
    ("train", "gradient_norm"): ("grad_norm",),
    ("train", "learning_rate"): ("learning_rate",),
    ("train", "data_wait"): ("data_time",),
    ("train", "step_time"): ("step_time",),
    ("train", "throughput"): ("throughput", "tokens_per_second", "samples_per_second"),
    ("train", "host_memory"): ("host_memory",),
    ("train", "device_memory"): ("memory",),
    ("train", "loss_scale"): ("loss_scale",),
    ("train", "weight_norm"): ("weight_norm",),
    ("train", "perplexity"): ("perplexity",),
    ("train", "reward"): ("reward",),
    ("train", "reward_std"): ("reward_std",),
    ("train", "kl"): ("kl", "approx_kl"),
    ("train", "entropy"): ("entropy",),
    ("train", "value_loss"): ("value_loss",),
    ("train", "policy_loss"): ("policy_loss",),
    ("train", "clip_fraction"): ("clip_ratio",),
    ("train", "explained_variance"): ("explained_variance",),
    ("train", "completion_length"): ("completion_length",),
    ("train", "reward_margin"): ("rewards/margins", "margin"),
    ("train", "pair_accuracy"): ("rewards/accuracies", "accuracy"),
}
"""What a reader calls a quantity, or the quantity of its role."""
READ_SIZES = 2.0**30
"""Bytes in the unit that a reader gives memory in."""
SETTINGS: Mapping[str, tuple[str, ...]] = {
    "learning_rate": ("learning_rate",),
    "warmup_steps": ("warmup_steps",),
    "weight_decay": ("weight_decay",),
    "clipping": ("max_grad_norm",),
    "batch_size": ("per_device_train_batch_size", "batch_size"),
    "accumulation": ("gradient_accumulation_steps",),
    "epochs": ("num_train_epochs",),
    "total_steps": ("max_steps",),
    "vocabulary": ("vocab_size",),
    "classes": ("num_labels",),
    "kl_coefficient": ("beta",),
    "seed": ("seed",),
}
"""What a reader calls a setting that is a number. Precision, optimizer and betas are read in more than one key."""
HALF = ("bf16", "fp16")
CLOSE = 2e-6
"""Relative error of a number that goes through float32."""


@dataclass(frozen=True, slots=True)
class Miss:
    """Something that was not read back.

    Args:
        kind: not found, other count, other steps, other values, setting, resumes or attempts.
        what: The quantity or setting.
        detail: What was read instead.
    """

    kind: str
    what: str
    detail: str


def misses(run: Run, written: Written) -> Iterator[Miss]:
    """Everything in which a run that was read differs from what was written."""
    factor = _factor(run, written)
    for quantity, series in written.series.items():
        what = "/".join(quantity)
        read = _found(run, quantity)
        if read is None:
            yield Miss("not found", what, f"read: {', '.join(sorted(run.series))}")
        else:
            yield from _differences(what, read, series, factor, _unit(quantity))
    yield from _settings(run, written)
    if len(run.resumes) != len(written.resumes):
        yield Miss("resumes", "resumes", f"{run.resumes}, not {written.resumes}")
    attempts = getattr(run, "attempts", None)
    if attempts is not None and len(attempts) != written.attempts:
        yield Miss("attempts", "attempts", f"{len(attempts)}, not {written.attempts}")
    elif attempts is None and written.attempts > 1:
        yield Miss("attempts", "attempts", "not told")


def _found(run: Run, quantity: Quantity) -> Read | None:
    """The series of a quantity, by its canonical name or, where it kept its own, by what the reader says it is."""
    names = CANONICAL[quantity]
    named = [run.series[name] for name in names if name in run.series]
    return next(iter(named + [series for series in run.series.values() if _is(series, names, quantity[0])]), None)


def _is(series: Read, names: tuple[str, ...], phase: str) -> bool:
    role = getattr(series, "role", None)
    return role is not None and role.quantity.value in names and (role.phase == "eval") == (phase == "eval")


def _unit(quantity: Quantity) -> float:
    return READ_SIZES if DIMENSION.get(quantity[1]) == "size" else 1.0


def _factor(run: Run, written: Written) -> float:
    """Steps of the reader in one of the axis, the same for all series; 1 where steps were written."""
    if written.exact_steps:
        return 1.0
    longest = max(written.series, key=lambda quantity: len(written.series[quantity].values))
    read = _found(run, longest)
    last = max(written.series[longest].values)
    return float(read.step[-1]) / last if read is not None and len(read.step) else 1.0


def _differences(what: str, read: Read, series: Series, factor: float, unit: float) -> Iterator[Miss]:
    steps = np.array(sorted(series.values))
    values = np.array([series.values[step] for step in steps]) / unit
    if len(read.step) != len(steps):
        yield Miss("other count", what, f"{len(read.step)}, not {len(steps)}")
        return
    off = np.abs(read.step - factor * steps)
    if off.max() > (1e-9 if factor == 1.0 else 1.0 + 1e-3 * factor):
        at = int(np.argmax(off))
        yield Miss("other steps", what, f"{read.step[at]:g}, not {factor * steps[at]:g}")
    if not any(_same(read.value, values * scale) for scale in series.scales):
        at = int(np.argmax(np.nan_to_num(np.abs(read.value - values), nan=np.inf)))
        yield Miss("other values", what, f"{read.value[at]:.6g}, not {values[at]:.6g}")


def _same(read: NDArray[np.float64], values: NDArray[np.float64]) -> bool:
    return bool(np.allclose(read, values, rtol=CLOSE, atol=1e-12, equal_nan=True))


def _settings(run: Run, written: Written) -> Iterator[Miss]:
    for name, keys in SETTINGS.items():
        if name not in written.settings:
            continue
        given = [run.config[key] for key in keys if key in run.config]
        if written.settings[name] not in given:
            yield Miss("setting", name, f"{given or 'not read'}, not {written.settings[name]}")
    half, read = written.settings.get("precision"), _precision(run)
    if half is not None and (half if half in HALF else None) != (read if read in HALF else None):
        yield Miss("setting", "precision", f"{read}, not {half}")
    betas = written.settings.get("betas")
    if isinstance(betas, tuple) and [run.config.get("adam_beta1"), run.config.get("adam_beta2")] != list(betas):
        yield Miss("setting", "betas", f"{run.config.get('adam_beta1')}, {run.config.get('adam_beta2')}")
    optimizer = written.settings.get("optimizer")
    if optimizer is not None and str(optimizer) not in str(run.config.get("optim", "")).lower():
        yield Miss("setting", "optimizer", f"{run.config.get('optim')}, not {optimizer}")


def _precision(run: Run) -> str | None:
    """What the reader concluded of the precision, or which flag is set; None without either."""
    told = getattr(getattr(run, "facts", None), "precision", None)
    return told or next((kind for kind in HALF if run.config.get(kind) is True), None)
