"""Gradients of the first pass are NaN or infinite though the loss is finite."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence


@probe_symptom(
    needs=("gradients",),
    effects={"invalid_math": "often", "fp16_overflow": "often"},
)
def probe_gradient_nonfinite(seen: Measured) -> Evidence | None:
    """Gradients of the first pass are NaN or infinite though the loss is finite."""
    assert seen.gradients is not None
    if not seen.gradients.nonfinite_count:
        return None
    names = ", ".join(seen.gradients.nonfinite[:3])
    return Evidence(f"{seen.gradients.nonfinite_count} of {seen.gradients.trainable} gradients are not finite: {names}")
