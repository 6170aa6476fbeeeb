"""No label of the batch is trained on: all are the ignored index (-100), or masked by another column."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence


@probe_symptom(
    needs=("trained_labels",),
    effects={"all_labels_masked": "always"},
)
def probe_labels_masked(seen: Measured) -> Evidence | None:
    """No label of the batch is trained on: all are the ignored index (-100), or masked by another column.

    Not this when: the batch is memorised, so that its labels are trained on after all.
    """
    if seen.trained_labels or seen.memorised:
        return None
    return Evidence(
        "0 labels of the batch are trained on: all are -100, masked by another column, or in the first place, which "
        "the shift by one drops"
    )
