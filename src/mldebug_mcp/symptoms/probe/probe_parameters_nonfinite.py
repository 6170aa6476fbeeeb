"""Parameters are NaN or infinite before the first step."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence


@probe_symptom(
    needs=("parameters",),
    effects={"bad_init": "usually", "hardware_fault": "rarely"},
)
def probe_parameters_nonfinite(seen: Measured) -> Evidence | None:
    """Parameters are NaN or infinite before the first step."""
    assert seen.parameters is not None
    if not seen.parameters.nonfinite_at_start:
        return None
    return Evidence(f"not finite before training: {', '.join(seen.parameters.nonfinite_at_start[:3])}")
