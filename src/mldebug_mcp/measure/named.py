"""The one lookup of a metric: by the name that it was logged with, its canonical name, or its role."""

from __future__ import annotations

from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.names import canonical
from mldebug_mcp.logs.roles import Quantity

_QUANTITIES = frozenset(map(str, Quantity))


def named(run: Run, name: str) -> list[Series]:
    """Return the series that a name means, in any case: one that is called so, else all that have the role.

    `lr`, `val_loss`, `train/loss` mean what a log calls `learning_rate`, `eval_loss`, `loss`.

    `loss`, `grad_norm`, `reward` are roles, and `eval_loss` that of evaluations; the whole is meant, or where only
    parts are logged, such as the norms of layers, these.
    """
    wanted = name.strip().lower()
    called = [one for key, one in run.series.items() if wanted in (key.lower(), (one.logged_as or key).lower())]
    if not called and (same := canonical(name.strip())) in run.series:
        return [run[same]]
    quantity, phase = wanted.removeprefix("eval_"), "eval" if wanted.startswith("eval_") else "train"
    if called or quantity not in _QUANTITIES:
        return called[:1]
    whole = list(run.with_role(Quantity(quantity), phase=phase))
    found = whole or list(run.with_role(Quantity(quantity), phase=phase, parts=True))
    return [run[one.name] for one in found]
