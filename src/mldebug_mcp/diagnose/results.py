"""Whether a log holds a result: a loss, a score or a reward. Without one, nothing can be said of its training."""

from __future__ import annotations

from mldebug_mcp.logs import Run
from mldebug_mcp.logs.names import is_loss
from mldebug_mcp.logs.roles.quantities import LOSSES, PAIRS, Quantity
from mldebug_mcp.text import shorten

SHOWN = 8
NO_RESULT = "no loss, score or reward found among"
_OTHERS = LOSSES | PAIRS | {Quantity.REWARD, Quantity.PERPLEXITY, Quantity.BITS}


def names_nothing(run: Run) -> bool:
    """Say whether a run logs metrics, and none of them is understood as a loss, a score or a reward."""
    return bool(run.series) and not any(_is_result(run, name) for name in run.series)


def without_result(run: Run) -> list[str]:
    """Return the note on a log in which no loss, score or reward was found, if it is one."""
    if not names_nothing(run):
        return []
    logged = [shorten(one.logged_as or name, 40) for name, one in run.series.items()]
    some = ", ".join(logged[:SHOWN]) + (", …" if len(logged) > SHOWN else "")
    return [
        f"{NO_RESULT} {some}: name it with --map {logged[0]}=loss "
        f'(names={{"{logged[0]}": "loss"}}), or nothing can be said of this training'
    ]


def _is_result(run: Run, name: str) -> bool:
    role = run[name].role
    if role is None:
        return is_loss(name) or name.startswith(("rewards/", "eval_"))
    return role.quantity in _OTHERS or role.quantity.higher_is_better or role.quantity.lower_is_better
