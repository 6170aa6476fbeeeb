"""Does the run end as planned while its evaluation still gets better?"""

from __future__ import annotations

from mldebug_mcp.logs.plan import plan_of
from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.evaluation import evaluation_losses
from mldebug_mcp.measure.statistics import edge_width, median
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LEAST = 8
"""Evaluations. Chosen: fewer do not tell a straight fall from one that flattens."""
QUARTER = 0.75
"""Of the run. Chosen: what is after it would be a quarter of a straight fall."""
SHARE = 0.15
"""Of the whole fall that comes in the last quarter. Chosen: a fall as the inverse root of the steps has 0.07."""
BETTER = 0.1
"""Share of its start by which the loss falls at all. Chosen: of less, noise makes up too much."""


@symptom(
    any_of=("eval_loss", "eval_*_loss", "val_loss"),
    not_for=("pretraining", "preference", "grpo", "ppo", "rl", "boosting"),
    whole_run=True,
    background=0.05,
    as_chosen=True,
)
def ends_while_improving(run: Run) -> Evidence | None:
    """The plan is done, and a seventh or more of all that the evaluation loss has fallen came in its last quarter.

    Not this when: the last evaluation is not the best; there are fewer than eight; the loss falls by less than a tenth;
    it is a pretraining, which is stopped by its budget.
    """
    plan = plan_of(run)
    if plan is None or not plan.is_done:
        raise CannotTell("the plan is not known, or not done yet")
    loss = evaluation_losses(run)[0].finite
    if len(loss) < LEAST:
        raise CannotTell(f"the log holds fewer than {LEAST} evaluations")
    width = max(1, min(edge_width(len(loss)), len(loss) // LEAST))
    first, last = median(loss.value[:width]), median(loss.value[-width:])
    late = loss.value[loss.step <= loss.step[0] + QUARTER * (loss.step[-1] - loss.step[0])]
    before = median(late[-width:])
    fall = first - last
    if fall < BETTER * abs(first) or loss.value[-1] > loss.value.min() or before - last < SHARE * fall:
        return None
    return Evidence(
        f"the evaluation loss falls to its end, at {run.place(loss.step[-1])}: "
        f"{(before - last) / fall:.0%} of its fall from {figure(first)} to {figure(last)} came in the last quarter",
        steps=(float(loss.step[-1]),),
        values={"share_in_last_quarter": (before - last) / fall, "first": first, "last": last},
    )
