"""The model is trained in evaluation mode though it has dropout or BatchNorm."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence


@probe_symptom(
    needs=("in_training_mode",),
    effects={"eval_mode_bug": "sometimes"},
)
def probe_trains_in_evaluation_mode(seen: Measured) -> Evidence | None:
    """The model is trained in evaluation mode though it has dropout or BatchNorm."""
    if seen.in_training_mode or not seen.mode_modules:
        return None
    return Evidence(f"the training pass runs in evaluation mode; the model has {', '.join(seen.mode_modules[:3])}")
