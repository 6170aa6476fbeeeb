"""Times, counters, shares and memory whose unit, or what they are of, only their numbers tell."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.columns import Columns
from mldebug_mcp.logs.names import canonical
from mldebug_mcp.logs.roles import role_of

NORMS, RATES = ("|g|", "||g||", "|grad|", "||grad||"), ("eta", "η")
"""Symbols of papers for the norm of the gradient and for the learning rate."""
MOST_GIB = 512.0
"""GiB that no process has of a device: a larger number without a unit is in MiB. Chosen: devices of today have 288."""
MIB, BYTES = 2.0**-10, 2.0**-30


def time_and_data(columns: Columns) -> str | None:
    """`time` or `batch` beside `data`, in the same records and never shorter: of a step, and the wait for its data."""
    names = {name.lower(): name for name in columns if name.lower() in ("time", "batch", "data")}
    if len(names) == 2 and "data" in names and "data_time" not in columns:
        whole = names["time" if "time" in names else "batch"]
        time, data = columns[whole], columns[names["data"]]
        if len(time) == len(data) and bool(np.all(data.values() <= time.values())):
            columns["data_time"] = columns.pop(names["data"])
            if "batch" in names:  # Pointcept and semseg: "Data 0.002 (0.574) Batch 0.818 (3.887)"
                columns["step_time"] = columns.pop(whole)
    return None


def clock(columns: Columns) -> str | None:
    """A column `time` is the time of a step beside a data_time; else, where it only goes up, it is a clock."""
    for name in ("time", "Time", "train/time"):
        if name in columns and not {"step_time", "elapsed"} & columns.keys():
            value = columns[name].values()
            if "data_time" in columns:
                columns["step_time"] = columns.pop(name)
            elif len(value) > 2 and bool(np.all(np.diff(value) >= 0)) and value[-1] > value[0]:
                columns["elapsed"] = columns.pop(name)
    return None


def symbols(columns: Columns) -> str | None:
    """`|g|` is the norm of the gradient, and `eta` the learning rate where it is no time that is left."""
    named = {canonical(name) for name in columns}
    told = []
    for name in [one for one in columns if one.strip().lower() in (*NORMS, *RATES)]:
        role = "grad_norm" if name.strip().lower() in NORMS else "learning_rate"
        value = columns[name].values()
        is_rate = bool(np.all((value >= 0) & (value < 1)))
        if role in named or not len(value) or (role == "learning_rate" and not is_rate):
            continue
        columns[role] = columns.pop(name)
        named.add(role)
        told.append(f"{name!r} is read as {role}")
    return ", ".join(told) or None


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


def memory(columns: Columns) -> str | None:
    """A memory without a unit that no device has in GiB is in MiB, as MMEngine and nvidia-smi write it, or in bytes."""
    told = []
    for name, column in columns.items():
        role = role_of(name)
        if role is None or not role.quantity.is_memory or role.unit or not len(column):
            continue
        most = float(np.nanmax(np.append(column.values(), 0.0)))
        unit = next((unit for unit in (1.0, MIB, BYTES) if most * unit <= MOST_GIB), 1.0)
        if unit != 1.0:
            column.scale(unit)
            told.append(f"{name!r} is read in {'MiB' if unit == MIB else 'bytes'} by its size")
    return "; ".join(told[:3]) or None


def batch_in_epoch(columns: Columns) -> str | None:
    """An epoch and a batch without a step: the batch counts inside the epoch."""
    names = {name.lower(): name for name in columns}
    if "epoch" in names and "batch" in names and not any(canonical(name) == "step" for name in columns):
        columns["step"] = columns.pop(names["batch"])
    return None
