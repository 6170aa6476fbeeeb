"""The gradient that the optimizer uses contains that of the step before."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import CannotTell, Evidence


@probe_symptom(
    needs=("watched",),
    effects={"missing_zero_grad": "always"},
)
def probe_gradient_accumulates(seen: Measured) -> Evidence | None:
    """The gradient that the optimizer uses contains that of the step before."""
    assert seen.watched is not None
    left = seen.watched.leftover_gradient
    if left is None:
        raise CannotTell("fewer than two optimizer steps were seen")
    if left < 0.5 or (seen.parameters is not None and seen.parameters.not_in_optimizer_share == 1):
        return None
    return Evidence(f"each step's gradient still holds {left:.0%} of the step before", values={"leftover": left})
