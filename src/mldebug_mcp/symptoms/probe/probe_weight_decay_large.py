"""Weight decay takes a visible part of the weights at each step, and the batch is not memorised."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import CannotTell, Evidence


@probe_symptom(
    needs=("parameters",),
    effects={"weight_decay_too_high": "always"},
    background=0.002,
)
def probe_weight_decay_large(seen: Measured) -> Evidence | None:
    """Weight decay takes a visible part of the weights at each step, and the batch is not memorised."""
    assert seen.parameters is not None
    share = seen.parameters.decay_per_step
    if share is None:
        raise CannotTell("the optimizer is the probe's own")
    if seen.memorised or share < 0.005:
        return None
    return Evidence(f"weight decay takes {share:.1%} of the weights at each step", values={"share": share})
