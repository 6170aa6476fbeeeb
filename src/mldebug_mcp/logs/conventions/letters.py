"""Metrics that are called by a single letter, which only what stands beside them explains."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.columns import Columns
from mldebug_mcp.logs.names import canonical

_ACCURACY = {"a": "accuracy", "eval_a": "eval_accuracy"}


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
