"""Accuracy of evaluation that goes to and fro between very few numbers."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.symptoms.quality import as_shares
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import counted, figure

LEAST, MANY = 6, 12
MOST, MOST_OF_MANY = 2, 3
"""Different numbers among at least so many evaluations. A model that learns never comes back to one of two."""
GAIN = 0.05
"""By so much no later accuracy is above the first one."""
GOOD = 0.85
"""From here on few answers are left to change, as in `eval_metric_constant`."""
SMALL, TOLERANCE = 50, 1e-4
"""Rows: fewer, which accuracies to four digits tell, have few shares that are near each other. All chosen by hand."""


@symptom(
    needs=("eval_accuracy",),
    not_for=("grpo", "ppo", "rl", "preference"),
    whole_run=True,
    background=0.02,  # so is an accuracy that was reached before the first evaluation
    as_chosen=True,
    follows=("eval_metric_constant", "loss_plateau", "loss_at_chance", "loss_constant", "loss_nonfinite", "loss_zero"),
)
def eval_accuracy_few_values(run: Run) -> Evidence | None:
    """The accuracy at the evaluations is one of two or three numbers, again and again, and does not rise.

    So it is where all rows get one and the same answer, now this and now that: the numbers are the shares of those
    answers. Not this when: it is always the same number (`eval_metric_constant`); it is good; the set has few rows.
    """
    accuracy = run["eval_accuracy"].finite
    share = as_shares(accuracy.value)
    if len(share) < LEAST:
        raise CannotTell(f"eval_accuracy has {counted(len(share), 'finite value')}; {LEAST} are needed")
    values, times = np.unique(share, return_counts=True)
    most = MOST_OF_MANY if len(share) >= MANY else MOST
    if not 2 <= len(values) <= most or times.max() == len(share) - 1 or float(values[-1]) >= GOOD:
        return None
    if float(share.max()) > float(share[0]) + GAIN:
        return None
    if (rows := _fewest_rows(values)) < SMALL:
        raise CannotTell(f"the accuracies are those of a set of {rows} rows, which has few shares to choose from")
    said = ", ".join(f"{figure(float(one))} at {count}" for one, count in zip(values, times, strict=True))
    return Evidence(
        f"eval_accuracy is {said} of {len(share)} evaluations, and nothing else",
        steps=(float(accuracy.step[0]),),
        values={"values": float(len(values)), "evaluations": float(len(share)), "highest": float(values[-1])},
    )


def _fewest_rows(shares: Floats) -> int:
    """Return the least number of rows, up to `SMALL`, of which all these can be shares."""
    for rows in range(1, SMALL):
        right = shares * rows
        if float(np.abs(right - np.round(right)).max()) <= TOLERANCE * rows:
            return rows
    return SMALL
