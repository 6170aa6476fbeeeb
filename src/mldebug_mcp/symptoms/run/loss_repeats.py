"""Loss that comes again number by number."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

AGAIN, DIFFERENT = 6, 3
"""So many losses in a row come again, this many of them different from one another: by chance not even three digits
would do so. Chosen by hand."""
MAX_POINTS = 20_000


@symptom(needs=("loss",), points=AGAIN + DIFFERENT, not_for=("grpo", "ppo", "rl"), background=0.001)
def loss_repeats(run: Run) -> Evidence | None:
    """The training losses of one epoch come again in the next, each the same number as before.

    The batches come in the same order, and the model gives them the same answers: nothing that it computes with has
    changed. Not this when: the loss is one number throughout (`loss_constant`); it only goes up and down with a period
    (`loss_periodic`). Unknown in a log without steps or epochs, which may hold one run twice.
    """
    if run.step_name == "record":
        raise CannotTell("without a step or an epoch, one run may have been logged twice")
    loss = run["loss"].finite
    values = loss.value[-MAX_POINTS:]
    found = _repeat(values)
    if found is None:
        return None
    lag, again = found
    return Evidence(
        f"the last {again} losses are those of {lag} records before, number by number (from {run.step_name} "
        f"{figure(float(loss.step[-again]))} on)",
        steps=(float(loss.step[-again]),),
        values={"records": again, "period": lag},
    )


def _repeat(values: Floats) -> tuple[int, int] | None:
    """Return after how many records losses come again, and how many of the last ones do; None if they do not.

    All of the log comes again so, or at least the last period.
    """
    for at in np.flatnonzero(values[:-DIFFERENT] == values[-1])[::-1].tolist():
        lag = len(values) - 1 - at
        same = values[lag:] == values[: len(values) - lag]
        again = len(same) if same.all() else int(np.argmin(same[::-1]))
        if again >= AGAIN and again >= min(lag, len(same)):
            return (lag, again) if len(np.unique(values[-again:])) >= DIFFERENT else None
    return None
