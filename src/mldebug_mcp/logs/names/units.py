"""Times, counters, shares and memory whose unit, or what they are of, only their numbers tell."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.columns import Columns
from mldebug_mcp.logs.names import role_of
from mldebug_mcp.logs.names.grammar import MAX_NAME
from mldebug_mcp.logs.names.lexicon import NAMESPACES, PHASES, SECONDS
from mldebug_mcp.logs.names.metrics import canonical
from mldebug_mcp.logs.names.words import segments_of

RATES = ("eta", "η")
"""Symbols of papers for the learning rate."""
BARE_SECONDS = {
    "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "msec": 1e-3, "min": 60.0,
    "mins": 60.0, "minutes": 60.0, "hrs": 3600.0, "hours": 3600.0,
}  # fmt: skip
"""Units of time that columns are called by alone, in seconds."""
CLOCKS_ALONE = ("min", "mins", "minutes", "hrs", "hours")
"""... and those that do not fit a step: a column is a clock, or it is something else, such as the least of values."""
_NO_MEASURE = NAMESPACES | {*PHASES.values(), "time"}
WAITS = ("data", "load", "loading", "fetch", "io", "input", "feed", "batch_load", "wait", "waits", "stall")
"""What columns are called that hold the wait for data, next to the time of the step."""
MOST_GIB = 512.0
"""GiB that no process has of a device: a larger number without a unit is in MiB. Chosen: devices of today have 288."""
MIB, BYTES = 2.0**-10, 2.0**-30


def time_and_data(columns: Columns) -> str | None:
    """`data` next to the time of a step (`time`, `batch`), in as many records, never longer: the wait for data."""
    if any(canonical(name) == "data_time" for name in columns):
        return None
    waits = [name for name in columns if _bare(name) in WAITS]
    wholes = [name for name in columns if canonical(name) == "step_time" or _bare(name) in ("time", "batch")]
    if len(waits) != 1 or len(wholes) != 1:
        return None
    time, data = columns[wholes[0]], columns[waits[0]]
    if len(time) == len(data) and bool(np.all(data.values() <= time.values())):
        columns["data_time"] = columns.pop(waits[0])
        if _bare(wholes[0]) == "batch":  # Pointcept and semseg: "Data 0.002 (0.574) Batch 0.818 (3.887)"
            columns["step_time"] = columns.pop(wholes[0])
    return None


def clock(columns: Columns) -> str | None:
    """A column `time` is the time of a step next to a data_time; else, where it only goes up, it is a clock.

    One that is called by a unit of time alone, or is a time in a unit, is a clock where it goes up; else the time
    of a step.
    """
    for name in columns:
        unit = _unit_of_time(name)
        if unit is None and not _is_bare_time(name):
            continue
        if {"step_time", "elapsed"} & {canonical(column) for column in columns}:
            return None
        value = columns[name].values()
        goes_up = len(value) > 2 and bool(np.all(np.diff(value) >= 0)) and value[-1] > value[0]
        if _bare(name) in CLOCKS_ALONE and not goes_up:
            continue
        if unit is not None:
            columns[name].scale(unit)
        if "data_time" in columns or (unit is not None and not goes_up):
            columns["step_time"] = columns.pop(name)
        elif goes_up:
            columns["elapsed"] = columns.pop(name)
        called = "elapsed time" if "elapsed" in columns else "step_time"
        return f"{name!r} is read as the {called}" if unit is not None else None
    return None


def _unit_of_time(name: str) -> float | None:
    """Return the seconds in the unit that a name is all of, or in that of a bare time: `ms`, "time (ms)"."""
    if role_of(name) is not None:
        return None
    words = _words(name)
    unit = BARE_SECONDS.get(_bare(name))
    if unit is not None:
        return unit if {*words[:-1]} <= _NO_MEASURE else None  # "audio/s" is a rate
    return SECONDS.get(words[-1]) if words and words[:-1] in (["time"], ["train", "time"]) else None


def _is_bare_time(name: str) -> bool:
    return name in ("time", "Time", "train/time") or (not name.isascii() and _words(name) == ["time"])


def _words(name: str) -> list[str]:
    return [word for segment in segments_of(name[:MAX_NAME]) for word in segment]


def _bare(name: str) -> str:
    """Return a name without what it stands below: `train/sec` is sec."""
    return name.rpartition("/")[2].strip().lower()


def rates(columns: Columns) -> str | None:
    """`eta` is the learning rate unless it is a time that is left, which is longer than that or gets shorter."""
    if any(canonical(name) == "learning_rate" for name in columns):
        return None
    for name in [column for column in columns if _bare(column) in RATES]:
        value = columns[name].values()
        if len(value) and bool(np.all((value >= 0) & ((value < 1) | (value == value[0])))):
            columns["learning_rate"] = columns.pop(name)
            return f"{name!r} is read as learning_rate"
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


def memory(columns: Columns) -> str | None:
    """A memory without a unit that no device has in GiB is in MiB, as MMEngine and nvidia-smi write it, or in bytes."""
    notes = []
    for name, column in columns.items():
        role = role_of(name)
        if role is None or not role.quantity.is_memory or role.unit or not len(column):
            continue
        most = float(np.nanmax(np.append(column.values(), 0.0)))
        unit = next((unit for unit in (1.0, MIB, BYTES) if most * unit <= MOST_GIB), 1.0)
        if unit != 1.0:
            column.scale(unit)
            notes.append(f"{name!r} is read in {'MiB' if unit == MIB else 'bytes'} by its size")
    return "; ".join(notes[:3]) or None


def batch_in_epoch(columns: Columns) -> str | None:
    """An epoch and a batch without a step: the batch counts inside the epoch."""
    names = {name.lower(): name for name in columns}
    if "epoch" in names and "batch" in names and not any(canonical(name) == "step" for name in columns):
        columns["step"] = columns.pop(names["batch"])
    return None
