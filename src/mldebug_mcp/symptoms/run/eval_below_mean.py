"""Predictions of a regression that are worse than the mean of the targets."""

from __future__ import annotations

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LEAST = 4
"""Evaluations. Chosen by hand."""


@symptom(needs=(), not_for=("grpo", "ppo", "rl", "preference"), whole_run=True, background=0.002)
def eval_below_mean(run: Run) -> Evidence | None:
    """The coefficient of determination, R², is below zero at every evaluation of the later half.

    R² is 1 less the squared error over the variance of the targets: below zero the mean of the targets is the better
    prediction. Not this when: it comes above zero in the end.
    """
    logged = [one.finite for one in run.with_role(Quantity.R2, phase="eval", parts=True)]
    logged = logged or [one.finite for one in run.with_role(Quantity.R2)]
    logged = [one for one in logged if len(one) >= LEAST]
    if not logged:
        raise CannotTell(f"no R² of evaluation has {LEAST} values")
    r2 = logged[0]
    later = r2.value[len(r2) // 2 :]
    if float(later.max()) >= 0:
        return None
    return Evidence(
        f"{r2.name} is {figure(float(r2.value[0]))} at first and {figure(float(r2.value[-1]))} at the end, below 0 in "
        f"all of the later {len(later)} evaluations: the mean of the targets predicts better",
        steps=(float(r2.step[len(r2) // 2]),),
        values={"first": float(r2.value[0]), "last": float(r2.value[-1]), "median": median(later)},
    )
