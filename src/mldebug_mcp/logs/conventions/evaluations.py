"""Which records of an evaluation are evaluations, and which values of a loss were worked out at all."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.columns import Column, Columns, stretches_of
from mldebug_mcp.logs.names import canonical

HELD = 3
"""Records with one evaluation loss, on average, from which on it is one that is printed again; chosen by hand."""
LEAST_HELD = 2
"""Records from one change to the next, as a rule, where an evaluation is printed again until the next one."""


def taking_turns(columns: Columns) -> str | None:
    """A loss of training and one of evaluation that take turns: NaN in the records of the other means not logged."""
    names = {canonical(name): name for name in columns}
    if not {"loss", "eval_loss"} <= names.keys():
        return None
    (at, loss), (beside, evaluation) = (columns[names[name]].arrays() for name in ("loss", "eval_loss"))
    if len(at) != len(beside) or bool(np.any(at != beside)) or not np.isfinite(loss).any():
        return None
    if not np.isfinite(evaluation).any() or bool(np.any(np.isfinite(loss) == np.isfinite(evaluation))):
        return None
    for name, value in ((names["loss"], loss), (names["eval_loss"], evaluation)):
        columns[name] = Column()
        columns[name].extend(stretches_of(at[np.isfinite(value)]), value[np.isfinite(value)])
    return f"{names['loss']} and {names['eval_loss']} take turns: NaN in one beside a number in the other is not logged"


def held_evaluation(columns: Columns) -> str | None:
    """LitGPT and NeMo print the last evaluation loss again with every training record until the next evaluation.

    Only the records where it changes are evaluations. When the first value was worked out, the log does not say.
    """
    loss = next((column for name, column in columns.items() if canonical(name) == "loss"), None)
    name = next((name for name in columns if canonical(name) == "eval_loss"), "")
    if loss is None or not name:
        return None
    at, value = columns[name].arrays()
    changes = np.flatnonzero(value[1:] != value[:-1]) + 1
    if len(value) < HELD * (len(changes) + 1) or float(np.isin(at, loss.arrays()[0]).mean()) < 0.9:
        return None
    trained = loss.arrays()[0]
    if 2 * len(value) < np.count_nonzero(trained >= at[0]):
        return None  # by far not with each record
    if not len(changes) and not _within_an_epoch(columns):
        return None  # an evaluation that always comes out the same
    if len(changes) > 1 and float(np.median(np.diff(changes))) < LEAST_HELD:
        return None  # it is worked out for each record, and stands still at last
    first = at[0] > loss.arrays()[0][0]  # printed only once there had been an evaluation
    kept = np.concatenate([[0], changes]) if first else changes
    columns.pop(name)
    if len(kept):
        columns[name] = Column()
        columns[name].extend(stretches_of(at[kept]), value[kept])
    unknown = "" if first else ", that of the first ones was worked out before the log begins and is left out"
    return f"{name} is printed again with each record: only records where it changes are evaluations{unknown}"


def _within_an_epoch(columns: Columns) -> bool:
    epoch = next((column.values() for name, column in columns.items() if canonical(name) == "epoch"), None)
    return epoch is not None and len(epoch) > 2 * len(np.unique(epoch))


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
