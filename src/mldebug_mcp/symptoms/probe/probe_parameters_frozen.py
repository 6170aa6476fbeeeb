"""Most parameters do not require a gradient, and the batch is not memorised."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence


@probe_symptom(
    needs=("parameters",),
    effects={"params_not_training": "sometimes"},
    background=0.0005,
)
def probe_parameters_frozen(seen: Measured) -> Evidence | None:
    """Most parameters do not require a gradient, and the batch is not memorised."""
    assert seen.parameters is not None
    share = seen.parameters.frozen_share
    if share < 0.5 or seen.memorised:
        return None
    return Evidence(f"{share:.0%} of the parameters do not require a gradient: {', '.join(seen.parameters.frozen[:3])}")
