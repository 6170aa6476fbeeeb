"""Metrics that are called by a letter or a syllable, which only what stands beside them explains."""

from __future__ import annotations

import re

import numpy as np

from mldebug_mcp.logs.beside import phase_in
from mldebug_mcp.logs.columns import Columns, rename
from mldebug_mcp.logs.names import canonical

_ACCURACY = {"a": "accuracy", "eval_a": "eval_accuracy"}
_OBJECTIVE = re.compile(
    r"(?:(?P<before>[a-z]{2,10})[/_. ])?obj"
    r"(?:[/_. ]?[\[(](?P<inside>[a-z]{2,10})[\])]|[/_. ](?P<behind>[a-z]{2,10}))?",
    re.IGNORECASE,
)
_OF_BOXES = re.compile(r"box|cls|iou|loss|class", re.IGNORECASE)


def accuracy_beside_loss(columns: Columns) -> str | None:
    """`a` beside a loss is the accuracy where it is a share: "L=2.136 a=0.2695"."""
    names = {canonical(name) for name in columns}
    if "loss" not in names or not names.isdisjoint(_ACCURACY.values()):
        return None
    found = [name for name in columns if name in _ACCURACY]
    if not found or not all(_is_share(columns, name) for name in found):
        return None
    for name in found:
        columns[_ACCURACY[name]] = columns.pop(name)
    return f"{', '.join(found)}: read as the accuracy beside the loss"


def _is_share(columns: Columns, name: str) -> bool:
    value = columns[name].values()
    value = value[np.isfinite(value)]
    return len(value) > 0 and bool(np.all((value >= 0) & (value <= 1)))


def objective_alone(columns: Columns) -> str | None:
    """`obj` of a phase is the loss where nothing else is; beside boxes and classes it is a part of a detector's."""
    names = {canonical(name) for name in columns}
    found = {name: phase for name in columns if (phase := _phase_of_objective(name)) is not None}
    if not found or not names.isdisjoint({"loss", "eval_loss"}) or any(_OF_BOXES.search(name) for name in columns):
        return None
    told = []
    for name, phase in found.items():
        new = "eval_loss" if phase == "eval" else "loss"
        if new not in columns:
            rename(columns, name, new)
            told.append(name)
    return f"{', '.join(told)}: read as the loss, as there is no other"


def _phase_of_objective(name: str) -> str | None:
    """Return the phase of a column of this name, "" where it says none; None if it is no objective."""
    match = _OBJECTIVE.fullmatch(name)
    said = None if match is None else match["before"] or match["inside"] or match["behind"] or ""
    return None if said is None or (said and not phase_in(said)) else phase_in(said)
