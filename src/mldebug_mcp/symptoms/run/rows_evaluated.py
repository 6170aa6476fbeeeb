"""Are rows of the evaluation trained on?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

NAME = "rows_evaluated"
"""How a recording names the share of the rows of a batch that were in an evaluation before."""
SHARE = 0.1
"""Share of the rows, over all looks. Chosen: where rows are short, a twentieth of them are alike by chance."""
LEAST = 3
"""Looks. Chosen: one batch may be an odd one."""


@symptom(any_of=(NAME,), whole_run=True, background=0.003, as_chosen=True)
def rows_evaluated(run: Run) -> Evidence | None:
    """Batches of the training hold rows that were in an evaluation before, value by value.

    Not this when: fewer than one row in ten is; no recorder saw both on the CPU.
    """
    looks = run[NAME].finite
    if len(looks) < LEAST:
        raise CannotTell(f"a recorder compared fewer than {LEAST} batches with the evaluation")
    share = float(looks.value.mean())
    if share < SHARE:
        return None
    first = float(looks.step[int(np.argmax(looks.value > 0))])
    said = f"{figure(100 * share)} % of the rows of {len(looks)} batches of the training were in an evaluation before"
    return Evidence(said, steps=(first,), values={"share": share, "batches": len(looks)})
