"""Do the same batches come again in the same order?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.periods import last_records
from mldebug_mcp.measure.same_order import FEWEST, comes_again, stands_out
from mldebug_mcp.measure.statistics import positive
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import by_outcome, told, with_attribute
from mldebug_mcp.text import figure

FAR = 4.0
"""Spreads of the places of a pass by which a hard one stands out. Fitted: whole orders that come again have up to 3.2
(benchmarks/faults and loops), pockets of bad rows 4.7 to 14."""


def batches_recur(run: Run) -> Evidence | None:
    """What single records of the loss differ in from their neighbours comes again, record by record, at one distance.

    So the batches are the same ones: of each pass, or of before a resume. Not this when: rows are drawn anew for each
    pass; records are uneven, or means over many batches.
    """
    if run.step_name == "epoch":
        raise CannotTell("the records are means over whole epochs")
    loss, spacing = last_records(run["loss"].finite, "a distance")
    values = loss.value
    values = np.log(values) if positive(values) else values
    found = comes_again(values)
    if found is None:
        return None
    hardest = stands_out(values, found.lag)
    per_pass = run.facts.steps_per_pass
    beside = f"; a pass over the data has {figure(per_pass)}" if per_pass and run.step_name == "step" else ""
    return Evidence(
        f"the ups and downs of single records of the loss come again after {figure(found.lag * spacing)} "
        f"{run.step_name}s (rank correlation {found.correlation:.2f} over {found.pairs} pairs of records){beside}",
        steps=(float(loss.step[found.lag]),),
        values={"distance": found.lag * spacing, "correlation": found.correlation, "pairs": found.pairs}
        | ({} if hardest is None else {"hardest": hardest}),
    )


def few_batches_stand_out(recur: Evidence) -> Evidence | None:
    """Of the batches that come again in the same order, one or a few are far harder than all others.

    Not this when: the loss goes up and down over the whole pass; it comes again once.
    """
    return recur if recur.values.get("hardest", 0.0) >= FAR else None


@question(
    outcome_of(batches_recur, 0.01, "smol_playbook"),
    outcome_of(few_batches_stand_out, 0.1, of="batches_recur"),
    needs=("loss",),
    points=FEWEST,
    not_for=("grpo", "ppo", "rl"),
)
def same_order(run: Run) -> Answers:
    """Look for an order that comes again, and then for places in it that stand out."""
    return with_attribute(told(by_outcome((batches_recur,), run)), "batches_recur", few_batches_stand_out)
