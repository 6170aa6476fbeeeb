"""Loss of a size that no sound computation gives."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

HUGE = 1e15
"""Squared errors of prices that nobody scaled come to some 1e12. Chosen by hand."""


@symptom(needs=("loss",), sources=("axolotl_stability",), background=0.002, follows=("loss_nonfinite",))
def loss_huge(run: Run) -> Evidence | None:
    """A finite loss is so large that its numbers are near overflow, or made of uninitialised memory.

    Not this when: targets of a regression are large and nobody scaled them. One record is enough.
    """
    loss = run["loss"].finite
    if not len(loss):
        raise CannotTell("no finite loss")
    at = int(np.argmax(np.abs(loss.value)))
    top = float(loss.value[at])
    if abs(top) < HUGE:
        return None
    first = float(loss.step[int(np.argmax(np.abs(loss.value) >= HUGE))])
    return Evidence(
        f"loss is {figure(top)} at {run.step_name} {figure(float(loss.step[at]))}",
        steps=(first,),
        values={"largest": top, "records": float(np.count_nonzero(np.abs(loss.value) >= HUGE))},
    )
