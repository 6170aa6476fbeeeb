"""The output does not change with the input."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import CannotTell, Evidence


@probe_symptom(
    needs=("dependence",),
    effects={"no_signal": "often", "dead_units": "often", "vanishing_gradients": "sometimes"},
    sources=("karpathy_recipe",),
)
def probe_input_ignored(seen: Measured) -> Evidence | None:
    """The output does not change with the input."""
    assert seen.dependence is not None
    if seen.dependence.inputs_change is None:
        raise CannotTell("the output could not be compared")
    return Evidence("the output stays the same with other inputs") if seen.dependence.inputs_change < 1e-6 else None
