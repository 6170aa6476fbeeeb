"""The configured effective batch is very small."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

SMALL = 4.0


@symptom(needs=(), sources=("mccandlish_2018",), whole_run=True, background=0.1, as_chosen=True)
def batch_small(run: Run) -> Evidence | None:
    """The effective batch (per device, times accumulation, times devices) is at most four samples.

    Not this when: samples are long packed sequences, a few of which hold many tokens; it runs on more devices than the
    configuration names. The number was chosen by hand.
    """
    effective = run.facts.effective_batch
    if effective is None:
        raise CannotTell("the batch size is not in the configuration")
    packed = run.config.get("packing") is True or run.config.get("sample_packing") is True
    if effective > SMALL or packed:
        return None
    return Evidence(f"the effective batch is {figure(effective)} samples", values={"effective_batch": effective})
