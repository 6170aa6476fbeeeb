"""BatchNorm uses the statistics of the batch in evaluation mode."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence


@probe_symptom(
    needs=("dependence",),
    effects={"eval_mode_bug": "sometimes"},
)
def probe_batch_statistics(seen: Measured) -> Evidence | None:
    """BatchNorm uses the statistics of the batch in evaluation mode."""
    assert seen.dependence is not None
    if not seen.dependence.batch_statistics:
        return None
    return Evidence(f"batch statistics are used in evaluation mode: {', '.join(seen.dependence.batch_statistics[:3])}")
