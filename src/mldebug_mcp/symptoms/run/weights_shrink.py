"""Do the weights lose what they have?"""

from __future__ import annotations

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.statistics import end_level
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LEAST = 5
"""Records of the norm. Chosen: its end is then a level."""
LEFT = 0.5
"""Of the norm at first. Chosen: a usual decay takes some per cent, and what is learnt makes the norm grow."""


@symptom(any_of=(Quantity.WEIGHT_NORM,), whole_run=True, background=0.003, as_chosen=True)
def weights_shrink(run: Run) -> Evidence | None:
    """The norm of the weights falls to half of what it was and less.

    Not this when: it falls by some per cent; only the norm of a part of the model is logged.
    """
    norm = next((one.finite for one in run.with_role(Quantity.WEIGHT_NORM) if len(one.finite) >= LEAST), None)
    if norm is None:
        raise CannotTell(f"the norm of the weights is not logged {LEAST} times")
    first, end = float(norm.value[0]), end_level(norm.value)
    if first <= 0 or end > LEFT * first:
        return None
    since = float(norm.step[int((norm.value <= LEFT * first).argmax())])
    return Evidence(
        f"{norm.name} falls from {figure(first)} to {figure(end)}, and to half of it by {run.place(since)}",
        steps=(since,),
        values={"first": first, "end": end},
    )
