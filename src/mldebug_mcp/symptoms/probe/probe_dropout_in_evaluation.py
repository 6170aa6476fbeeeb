"""Dropout is active in evaluation mode."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence


@probe_symptom(
    needs=("dependence",),
    effects={"eval_mode_bug": "sometimes"},
)
def probe_dropout_in_evaluation(seen: Measured) -> Evidence | None:
    """Dropout is active in evaluation mode."""
    assert seen.dependence is not None
    if not seen.dependence.dropout:
        return None
    return Evidence(f"dropout is active in evaluation mode: {', '.join(seen.dependence.dropout[:3])}")
