"""Which metrics are of training and which of evaluation, where their names do not say it, or name both."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.beside import phase_in
from mldebug_mcp.logs.columns import Columns, rename
from mldebug_mcp.logs.names import canonical
from mldebug_mcp.logs.roles import role_of


def of_training_inside(columns: Columns) -> str | None:
    """`val/train_acc` beside `val/acc` is of training: the evaluation measured both."""
    told = []
    for name in list(columns):
        place, mark, inside = name.rpartition("/")
        bare = inside.removeprefix("train_")
        is_both = mark and bare != inside and phase_in(place) == "eval" and f"{place}/{bare}" in columns
        if is_both and all(canonical(one) != canonical(inside) for one in columns):
            rename(columns, name, inside)
            told.append(name)
    return f"{', '.join(told[:3])}: read as of training" if told else None


def beside_both_losses(columns: Columns) -> str | None:
    """fastai: what stands beside `train_loss` and `valid_loss`, as often as they do, is of validation."""
    if not {"train_loss", "valid_loss"} <= columns.keys():
        return None
    at, names = columns["valid_loss"].arrays()[0], {canonical(name) for name in columns}
    told = []
    for name in list(columns):
        role = role_of(name)
        scores = role is not None and (role.quantity.higher_is_better or role.quantity.lower_is_better)
        paired = f"train_{name}" in columns
        bare = (role is None or not role.phase) and (scores or paired) and canonical(f"eval_{name}") not in names
        if bare and np.array_equal(columns[name].arrays()[0], at):
            columns[f"eval_{name}"] = columns.pop(name)
            told.append(name)
    return f"{', '.join(told[:3])}: read as of validation, as fastai logs them" if told else None
