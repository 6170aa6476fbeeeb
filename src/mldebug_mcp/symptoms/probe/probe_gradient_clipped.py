"""The optimizer sees a small part of the gradient that backward gave, and the batch is not memorised."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure


@probe_symptom(
    needs=("watched",),
    effects={"clip_too_tight": "always"},
    background=0.002,
)
def probe_gradient_clipped(seen: Measured) -> Evidence | None:
    """The optimizer sees a small part of the gradient that backward gave, and the batch is not memorised."""
    assert seen.watched is not None
    factor = seen.watched.clip_factor
    if factor is None:
        raise CannotTell("no optimizer step with a gradient was seen")
    if seen.memorised or factor > 0.02:
        return None
    return Evidence(
        f"the gradient is scaled by {figure(factor)} before the optimizer uses it", values={"factor": factor}
    )
