"""All rows have the same input though their labels differ."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence


@probe_symptom(
    needs=("distinct_inputs", "reference"),
    effects={"no_signal": "sometimes", "bad_batch": "rarely"},
)
def probe_inputs_constant(seen: Measured) -> Evidence | None:
    """All rows have the same input though their labels differ."""
    assert seen.reference is not None
    if seen.distinct_inputs != 1 or seen.reference.least <= 0:
        return None
    return Evidence("all rows have the same input, with different labels")
