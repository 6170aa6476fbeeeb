"""The batch itself holds NaN or infinity."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence


@probe_symptom(
    needs=("inputs_finite",),
    effects={"bad_batch": "always"},
)
def probe_inputs_nonfinite(seen: Measured) -> Evidence | None:
    """The batch itself holds NaN or infinity."""
    return None if seen.inputs_finite else Evidence("the inputs of the batch hold NaN or infinity")
