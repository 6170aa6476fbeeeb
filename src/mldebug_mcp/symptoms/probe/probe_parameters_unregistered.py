"""Parameters that the pass uses stand in a plain list or dict, where `parameters()` does not find them."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence


@probe_symptom(
    needs=("unregistered",),
    effects={"params_not_training": "sometimes"},
)
def probe_parameters_unregistered(seen: Measured) -> Evidence | None:
    """Parameters that the pass uses stand in a plain list or dict, where `parameters()` does not find them."""
    if not seen.unregistered:
        return None
    return Evidence(f"not registered with the model: {', '.join(seen.unregistered[:4])}")
