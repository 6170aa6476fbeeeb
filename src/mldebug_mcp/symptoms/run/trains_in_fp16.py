"""The configuration asks for half precision (fp16)."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom


@symptom(needs=(), sources=("bekman_mle",), whole_run=True, background=0.15, as_chosen=True)
def trains_in_fp16(run: Run) -> Evidence | None:
    """Training runs in half precision (fp16), which holds no number above 65504.

    Not this when: it runs in bf16 or fp32, or fp16 is explicitly off; unknown where the configuration does not say. By
    itself this is not a fault, but overflow needs it.
    """
    precision = run.facts.precision
    if precision is None:
        raise CannotTell("the configuration does not name the precision")
    return Evidence("the configuration asks for half precision", values={"fp16": 1}) if precision == "fp16" else None
