"""Where each checkpoint stands on the curve of a metric, and the value there."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from mldebug_mcp.checks.curve import MAD_TO_STD, noise_on_slope
from mldebug_mcp.checks.train_eval_gap import rows_behind
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.core.text import figure
from mldebug_mcp.judge.checkpoint_metric import Metric, plain_name
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.checkpoints import Checkpoint
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names.metrics import canonical
from mldebug_mcp.logs.settings.facts import POLICIES

MIN_EVALUATIONS = 3
"""Evaluations below which nothing is distinguished. Chosen: two show no noise."""
MIN_FOR_NOISE = 4
"""Evaluations from which their noise is known: two second differences."""
MIN_FOR_THIRD = 6
"""Evaluations from which third differences count: three of them."""
MAX_DISTANCE_BY_STEPS = 0.02
MAX_DISTANCE_OTHERWISE = 0.05
"""Of the usual distance of evaluations: so near to one a checkpoint was evaluated, by steps and by epochs. Chosen: the
step of a checkpoint and that of its record differ by one in some trainers (Lightning)."""
MOST_OF_LEAST_DISTANCE = 0.49
"""Of the least distance of evaluations, which a step of one must not exceed."""
MOST_RECORDS = 50
"""Training records whose median stands for a checkpoint, where only those tell how good it is. Chosen: by hand."""
NAMED_BEST = "named the best one"


_COUNTERS = ("global_step", "iter_num", "iteration", "step", "epoch", "num_updates", "completed_steps")


def asks_inside(checkpoint: Checkpoint) -> bool:
    """Say whether a checkpoint is a file of torch.save that tells more than its name: when, or by which metric."""
    if not checkpoint.path.name.lower().endswith((".pt", ".pth", ".ckpt")) or not checkpoint.size:
        return False
    return checkpoint.path.suffix == ".ckpt" or not (checkpoint.named.says_when or checkpoint.named.label)


def counters_in(checkpoint: Checkpoint) -> dict[str, object]:
    """Return the step, epoch and monitor that a checkpoint holds; nothing of one that cannot be read so."""
    from mldebug_mcp.logs.settings.pickled import plain_values_in_checkpoint

    try:
        found = plain_values_in_checkpoint(checkpoint.path)
    except (OSError, InputError):
        return {}
    counters = {name: found[name] for name in _COUNTERS if isinstance(found.get(name), int)}
    callbacks = found.get("callbacks")
    for key, state in callbacks.items() if isinstance(callbacks, dict) else ():
        if isinstance(state, dict) and "ModelCheckpoint" in str(key) and isinstance(state.get("monitor"), str):
            mode = re.search(r"'mode': '(min|max)'", str(key))
            counters |= {"monitor": state["monitor"], "mode": mode[1] if mode else ""}
    return counters


@dataclass(frozen=True, slots=True)
class Curve:
    """The metric over the run.

    Args:
        step: Where it was evaluated, ascending, shape (n,).
        value: The values there, shape (n,).
        epoch: The epochs there, shape (n,); None is not known.
        is_training: Whether they are records of training, each too noisy to stand for a checkpoint.
        noise: Standard deviation of one value, None where it is not known.
    """

    step: Floats
    value: Floats
    epoch: Floats | None
    is_training: bool
    noise: float | None

    def __len__(self) -> int:
        return len(self.value)


def curve_of(run: Run, metric: Metric) -> Curve:
    """Return the metric over the run, with its noise; empty where nothing was logged of it."""
    empty = np.empty(0)
    if metric.series is None:
        return Curve(empty, empty, None, is_training=False, noise=None)
    series = metric.series.finite
    role = series.role
    is_training = run.kind in POLICIES and not (role is not None and role.is_evaluation)
    noise = None
    if len(series) >= MIN_FOR_NOISE:
        rows = None if role is None or not role.quantity.is_share else rows_behind(series.value)
        noise = max(_noise(series.value), 1 / rows if rows else 0.0)
    return Curve(series.step, series.value, _epochs_at(run, series.step), is_training, noise)


def _noise(values: Floats) -> float:
    """Return the noise of evaluations, by second differences or third ones, whichever a bend of the curve moves less.

    The variance of third differences of independent values is 20 times that of one (1 + 9 + 9 + 1).
    """
    on_slope = noise_on_slope(values)
    if len(values) < MIN_FOR_THIRD:
        return on_slope
    return min(on_slope, MAD_TO_STD * median(np.abs(np.diff(values, n=3))) / math.sqrt(20))


def _epochs_at(run: Run, steps: Floats) -> Floats | None:
    if run.step_name != "step":
        return steps
    epoch = run["epoch"].finite if "epoch" in run else None
    if epoch is not None and len(epoch):
        at = np.clip(np.searchsorted(epoch.step, steps, side="right") - 1, 0, None)
        return np.asarray(epoch.value[at])
    per_pass = run.facts.steps_per_pass
    return steps / per_pass if per_pass else None


@dataclass(frozen=True, slots=True)
class _When:
    """When a checkpoint was saved.

    Args:
        step: By the count of whoever saved it.
        epoch: By the count of the log.
        note: How that is known, where its name does not say it.
        per_epoch: Steps in an epoch, None where that is not known.
    """

    step: float | None
    epoch: float | None
    note: str = ""
    per_epoch: float | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a checkpoint stands on the curve.

    Args:
        step: Its position on the axis of the log.
        index: The evaluation that was made there, None where none was.
        value: The metric there.
        how: How that is known.
        note: A remark.
    """

    step: float | None = None
    index: int | None = None
    value: float | None = None
    how: Literal["there", "between", "by its name", "no"] = "no"
    note: str = ""


def places_of(
    run: Run, saved: Sequence[Checkpoint], inside: Mapping[str, Mapping[str, object]], metric: Metric, curve: Curve
) -> list[tuple[Checkpoint, Place]]:
    """Return the checkpoints, each with where it stands on the curve."""
    of_epochs = [checkpoint.named.epoch for checkpoint in saved if checkpoint.named.epoch is not None]
    keras = any(checkpoint.path.name.endswith((".keras", ".h5", ".hdf5")) for checkpoint in saved)
    offset = _offset(of_epochs, curve, keras=keras)
    bare = [checkpoint.named.number for checkpoint in saved if checkpoint.named.number is not None]
    steps = [checkpoint.named.step for checkpoint in saved if checkpoint.named.step is not None]
    by_epoch = _counts_epochs(run, bare, curve)
    shift = _offset(bare, curve, keras=keras) if by_epoch else 0.0
    per_pass = run.facts.steps_per_pass or _steps_per_epoch(run, steps if by_epoch else [*steps, *bare], curve)
    placed = []
    for checkpoint in saved:
        name, counters = checkpoint.named, inside.get(checkpoint.name, {})
        step, epoch, note = name.step, name.epoch, ""
        if name.number is not None:
            step, epoch = (None, name.number + shift) if by_epoch else (name.number, None)
        elif epoch is not None:
            epoch += offset
        if step is None and epoch is None and (counter := next((key for key in _COUNTERS if key in counters), "")):
            count = float(str(counters[counter]))
            step, epoch = (None, count) if counter == "epoch" else (count, None)
            note = f"{counter} {figure(count)} is written in it"
        placed.append((checkpoint, _place(run, checkpoint, _When(step, epoch, note, per_pass), metric, curve)))
    return placed


def _place(run: Run, checkpoint: Checkpoint, when: _When, metric: Metric, curve: Curve) -> Place:
    where = _axis_position(run, when, curve)
    if when.step is None and when.epoch is None and (labelled := _by_label(run, checkpoint, metric, curve)) is not None:
        return labelled
    there = None if where is None or not len(curve) else _on_curve(run, curve, where, when)
    if there is not None and there.how == "there":
        return there
    score = _score_in_name(checkpoint, metric)
    if score is not None:
        return Place(when.step if where is None else where, None, score, "by its name", when.note)
    return there or Place(when.step if where is None else where, note=when.note)


def _on_curve(run: Run, curve: Curve, where: float, when: _When) -> Place:
    """Return what the curve says of a position on the axis of the log."""
    if curve.is_training:
        return Place(where, _record_at(curve, where), level_at(curve, where), "there", when.note)
    index = _evaluated(run, curve, where, when.epoch if when.step is None else None)
    if index is not None:
        return Place(where, index, float(curve.value[index]), "there", when.note)
    if curve.step[0] < where < curve.step[-1]:
        return Place(where, None, float(np.interp(where, curve.step, curve.value)), "between", when.note)
    beyond = "before the first evaluation" if where <= curve.step[0] else "after the last evaluation"
    return Place(where, note=when.note or beyond)


def _axis_position(run: Run, when: _When, curve: Curve) -> float | None:
    """Return where a checkpoint stands on the axis of the log."""
    step, epoch, per_pass = when.step, when.epoch, when.per_epoch
    if run.step_name == "step":
        if step is not None:
            return step
        if epoch is None or curve.epoch is None or not len(curve):
            return epoch * per_pass if epoch is not None and per_pass else None
        near = np.flatnonzero(np.abs(curve.epoch - epoch) <= MAX_DISTANCE_OTHERWISE)
        if len(near):
            return float(curve.step[near[-1]])
        return float(np.interp(epoch, curve.epoch, curve.step)) if curve.epoch[0] < epoch < curve.epoch[-1] else None
    if epoch is not None:
        return epoch
    return step / per_pass if step is not None and per_pass else step


def _evaluated(run: Run, curve: Curve, where: float, epoch: float | None) -> int | None:
    """Return the evaluation of a checkpoint, None where there was none at its step."""
    apart = np.diff(np.unique(curve.step))
    usual, least = (median(apart), float(apart.min())) if len(apart) else (math.inf, math.inf)
    if run.step_name == "step":
        near = min(
            max(1.0, MAX_DISTANCE_BY_STEPS * usual if math.isfinite(usual) else 1.0), MOST_OF_LEAST_DISTANCE * least
        )
    else:
        near = MAX_DISTANCE_OTHERWISE * (usual if math.isfinite(usual) else 1.0)
    if epoch is not None and run.step_name == "step":
        near = max(near, 1.0)
    there = np.flatnonzero(np.abs(curve.step - where) <= near + 1e-9)
    return int(there[-1]) if len(there) else None


def _record_at(curve: Curve, where: float) -> int | None:
    index = int(np.searchsorted(curve.step, where, side="right")) - 1
    return index if index >= 0 else None


def level_at(curve: Curve, where: float) -> float | None:
    """Return the median of the training records before a checkpoint: a single one is too noisy."""
    until = int(np.searchsorted(curve.step, where, side="right"))
    return median(curve.value[max(0, until - window_of(curve)) : until]) if until else None


def window_of(curve: Curve) -> int:
    """Return how many training records stand for a checkpoint: a twentieth of them."""
    return min(MOST_RECORDS, max(1, len(curve) // 20))


def _by_label(run: Run, checkpoint: Checkpoint, metric: Metric, curve: Curve) -> Place | None:
    """Return where a checkpoint stands that calls itself the best or the last, or is overwritten as one of them."""
    label, note = checkpoint.named.label, ""
    if not label:
        always = run.settings.flag("always_save_checkpoint")
        if always is None and not run.settings.flag("load_best_model_at_end"):
            return None
        label = "last" if always else "best"
        why = "load_best_model_at_end" if always is None else f"always_save_checkpoint={str(always).lower()}"
        note = f"taken for the {label} one, as {why}"
    if not len(curve):
        return Place(step=run.last_step if label == "last" else None, note=note)
    if label == "best":
        index = best_of(curve, metric)
        return Place(float(curve.step[index]), index, value_at(curve, index), "there", note or NAMED_BEST)
    index = len(curve) - 1
    if not curve.is_training and _evaluated(run, curve, run.last_step, None) != index:
        return Place(run.last_step, note=note or "named the last one; the end was not evaluated")
    return Place(float(curve.step[index]), index, value_at(curve, index), "there", note or "named the last one")


def value_at(curve: Curve, index: int) -> float | None:
    """Return what stands for an evaluation: its value, or the level of the training records before it."""
    return level_at(curve, float(curve.step[index])) if curve.is_training else float(curve.value[index])


def _score_in_name(checkpoint: Checkpoint, metric: Metric) -> float | None:
    for key, value in checkpoint.named.scores.items():
        if not key or canonical(key) == canonical(metric.name) or plain_name(key) == plain_name(metric.name):
            return value
    return None


def _offset(epochs: Sequence[float], curve: Curve, *, keras: bool) -> float:
    """Return what is to be added to the epochs in names for those of the log: one counts from 0, the other from 1."""
    if not epochs or curve.epoch is None or not len(curve):
        return 0.0
    first, last = float(curve.epoch.min()), float(curve.epoch.max())
    low, high = min(epochs), max(epochs)
    if keras and first == 0:
        return -1.0  # Keras numbers files from 1 and logs from 0
    if high == last + 1 and first == 0:
        return -1.0
    return 1.0 if low == 0 and 0 < first <= 1 else 0.0


def _steps_per_epoch(run: Run, steps: Sequence[float], curve: Curve) -> float | None:
    """Return the steps in an epoch of a log that counts epochs alone, by checkpoints that count steps.

    The last of them then was saved at the last evaluation, and each other at one, too; else it is not known.
    """
    if run.step_name == "step" or len(steps) < MIN_EVALUATIONS or len(curve) < MIN_EVALUATIONS:
        return None
    each = max(steps) / float(curve.step[-1]) if curve.step[-1] > 0 else 0.0
    if each < 2:
        return None
    apart = np.abs(np.subtract.outer(np.array(steps) / each, curve.step)).min(axis=1)
    return each if bool(np.all(apart <= MAX_DISTANCE_OTHERWISE)) else None


def _counts_epochs(run: Run, bare: Sequence[float], curve: Curve) -> bool:
    """Say whether numbers without a word count epochs: more of them fit to the epochs than to the steps of the log."""
    if bare and run.step_name == "epoch":
        return max(bare) <= (run.last_step + 1) * 2
    if not bare or run.step_name != "step" or curve.epoch is None:
        return False
    last = max(run.last_step, float(curve.step[-1]) if len(curve) else 0.0)
    if max(bare) > last + 1:
        return False
    of_steps = sum(bool(np.any(np.abs(curve.step - value) <= 1)) for value in bare)
    of_epochs = sum(bool(np.any(np.abs(curve.epoch - value) <= MAX_DISTANCE_OTHERWISE)) for value in bare)
    return of_epochs > of_steps and max(bare) <= float(curve.epoch.max()) + 1


def best_of(curve: Curve, metric: Metric) -> int:
    """Return which evaluation is the best."""
    if curve.is_training:
        levels = np.array([level_at(curve, float(step)) for step in curve.step], float)
        return int(np.argmax(levels) if metric.higher else np.argmin(levels))
    return int(np.argmax(curve.value) if metric.higher else np.argmin(curve.value))
