"""No label of the batch is trained on: all are the ignored index (-100)."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence


@probe_symptom(
    needs=("trained_labels",),
    effects={"all_labels_masked": "always"},
)
def probe_labels_masked(seen: Measured) -> Evidence | None:
    """No label of the batch is trained on: all are the ignored index (-100)."""
    if seen.trained_labels:
        return None
    return Evidence("0 labels of the batch are trained on; all are -100")
