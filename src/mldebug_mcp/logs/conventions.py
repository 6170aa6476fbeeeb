"""What a log means beyond its names: conventions that show only when all columns are known.

Each is a function that changes the columns where its convention holds, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from mldebug_mcp.logs.columns import Column, stretches_of
from mldebug_mcp.logs.names import canonical
from mldebug_mcp.logs.several import choose_run

if TYPE_CHECKING:
    from mldebug_mcp.logs.builder import RunBuilder

Columns = dict[str, Column]

_EXPORT = re.compile(r"(?P<run>.+?) - (?P<metric>.+?)(?P<bound>__MIN|__MAX)?")


def apply(builder: RunBuilder, columns: Columns) -> None:
    """Apply every convention to the columns of a log (raw name → column); the builder is told what held."""
    wandb_export(builder, columns)
    for convention in _CONVENTIONS:
        note = convention(columns)
        if note:
            builder.note(note)


def wandb_export(builder: RunBuilder, columns: Columns) -> None:
    """CSV exported from a W&B chart: "run - metric" beside "run - metric__MIN" and "__MAX".

    The bounds of a chart's bucket are no metrics. Where the chart shows several runs, one is read.
    """
    found = {name: match for name in columns if (match := _EXPORT.fullmatch(name))}
    if not any(match["bound"] for match in found.values()):
        return
    sizes: dict[str, int] = {}
    for name, match in found.items():
        sizes[match["run"]] = max(sizes.get(match["run"], 0), len(columns[name]))
    chosen = choose_run(builder, "the export", sizes, {})
    for name, match in found.items():
        column = columns.pop(name)
        if match["run"] == chosen and not match["bound"]:
            columns[match["metric"]] = column


def gym_monitor(columns: Columns) -> str | None:
    """Gym's and Stable-Baselines' monitor.csv: r, l, t are return, length and time of each episode."""
    if not {"r", "l", "t"} <= columns.keys() or len(columns) > 5:
        return None
    for old, new in (("r", "reward"), ("l", "ep_len"), ("t", "elapsed")):
        columns[new] = columns.pop(old)
    at, length = columns["ep_len"].arrays()
    columns["step"] = Column()
    columns["step"].extend(stretches_of(at), np.cumsum(length))
    return "an episode monitor (r, l, t): steps are environment steps, the sum of the episodes' lengths"


def clock(columns: Columns) -> str | None:
    """A column `time` that only goes up is a clock; beside a data_time it is the time of a step."""
    for name in ("time", "Time", "train/time"):
        if name in columns and len(columns[name]) > 1 and not {"step_time", "elapsed"} & columns.keys():
            value = columns[name].values()
            if len(value) > 2 and bool(np.all(np.diff(value) >= 0)) and value[-1] > value[0]:
                columns["elapsed"] = columns.pop(name)
            elif "data_time" in columns:
                columns["step_time"] = columns.pop(name)
    return None


def percentages(columns: Columns) -> str | None:
    """An accuracy above one is a percentage."""
    found = [
        name
        for name, column in columns.items()
        if canonical(name) in ("accuracy", "eval_accuracy", "mean_token_accuracy", "rewards/accuracies")
        and len(column)
        and float(np.nanmax(np.append(column.values(), 0.0))) > 1.5
    ]
    return f"{', '.join(found[:3])}: in percent" if found else None


def batch_in_epoch(columns: Columns) -> str | None:
    """An epoch and a batch without a step: the batch counts inside the epoch."""
    names = {name.lower(): name for name in columns}
    if "epoch" in names and "batch" in names and not any(canonical(name) == "step" for name in columns):
        columns["step"] = columns.pop(names["batch"])
    return None


def filtered_nan(columns: Columns) -> str | None:
    """The Trainer hides a NaN loss behind the mean of the others unless logging_nan_inf_filter is off."""
    if not {"loss", "grad_norm", "learning_rate", "epoch"} <= columns.keys():
        return None
    bad = ~np.isfinite(columns["grad_norm"].values())
    if not bad.any():
        return None
    at, (loss_at, loss) = columns["grad_norm"].arrays()[0], columns["loss"].arrays()
    hidden = int(np.isin(loss_at[np.isfinite(loss)], at[bad]).sum())
    if not hidden:
        return None
    return (
        f"{hidden} record(s) have a finite loss beside a gradient norm of NaN or Inf: the Trainer logs the mean of the "
        "other steps in place of a NaN loss (logging_nan_inf_filter)"
    )


_CONVENTIONS: tuple[Callable[[Columns], str | None], ...] = (
    gym_monitor,
    clock,
    percentages,
    batch_in_epoch,
    filtered_nan,
)
