"""Which records of an evaluation are evaluations, and which values of a loss were worked out at all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mldebug_mcp.logs.columns import Column, Columns, Floats, Rows, rename, stretches_of
from mldebug_mcp.logs.names import canonical
from mldebug_mcp.logs.roles import role_of

HELD = 3
"""Records with one evaluation loss, on average, from which on it is one that is printed again; chosen by hand."""
LEAST_BESIDE, MOST_EVALUATED = 2, 0.5
"""Evaluations, and the share of the training records beside which they stand at most, where it tells something that a
score is logged with them alone. Chosen: once an epoch, both are logged together."""
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


def scores_of_evaluation(columns: Columns) -> str | None:
    """A score that is logged with the evaluation losses, and with no other of the training losses, is of evaluation."""
    names = {canonical(name): name for name in columns}
    if not {"loss", "eval_loss"} <= names.keys():
        return None
    places = _places(columns)
    trained, evaluated = (np.unique(places(columns[names[name]].arrays()[0])) for name in ("loss", "eval_loss"))
    if len(evaluated) < LEAST_BESIDE or np.isin(trained, evaluated).mean() > MOST_EVALUATED:
        return None
    told = []
    for name in list(columns):
        role, new = role_of(name), f"eval_{name}"
        if role is None or role.phase or not (role.quantity.higher_is_better or role.quantity.lower_is_better):
            continue
        if canonical(new) not in names and np.array_equal(np.unique(places(columns[name].arrays()[0])), evaluated):
            rename(columns, name, new)
            told.append(name)
    if not told:
        return None
    return (
        f"{', '.join(told[:3])}: read as of evaluation, as {'it is' if len(told) == 1 else 'they are'} logged with it"
    )


def _places(columns: Columns) -> Callable[[Rows], Floats]:
    """Return what tells the steps of records, or their numbers where the records count no step."""
    counter = next((column for name, column in columns.items() if canonical(name) == "step"), None)
    if counter is None or not len(counter):
        return lambda rows: rows.astype(np.float64)
    at, step = counter.arrays()
    return lambda rows: step[np.clip(np.searchsorted(at, rows, side="right") - 1, 0, len(step) - 1)]


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
