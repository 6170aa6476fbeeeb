"""Do the same batches come again in the same order?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.periods import last_records
from mldebug_mcp.measure.same_order import FEWEST, comes_again
from mldebug_mcp.measure.statistics import positive
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure


@symptom(
    needs=("loss",),
    points=FEWEST,
    sources=("smol_playbook",),
    not_for=("grpo", "ppo", "rl"),
    background=0.01,
)
def batches_recur(run: Run) -> Evidence | None:
    """What single records of the loss differ in from their neighbours comes again, record by record, at one distance.

    So the batches are the same ones: of each pass, or of before a resume. Not this when: rows are drawn anew for each
    pass; records are uneven, or means over many batches.
    """
    if run.step_name == "epoch":
        raise CannotTell("the records are means over whole epochs")
    loss, spacing = last_records(run["loss"].finite, "a distance")
    values = loss.value
    found = comes_again(np.log(values) if positive(values) else values)
    if found is None:
        return None
    per_pass = run.facts.steps_per_pass
    beside = f"; a pass over the data has {figure(per_pass)}" if per_pass and run.step_name == "step" else ""
    return Evidence(
        f"the ups and downs of single records of the loss come again after {figure(found.lag * spacing)} "
        f"{run.step_name}s (rank correlation {found.correlation:.2f} over {found.pairs} pairs of records){beside}",
        steps=(float(loss.step[found.lag]),),
        values={"distance": found.lag * spacing, "correlation": found.correlation, "pairs": found.pairs},
    )
