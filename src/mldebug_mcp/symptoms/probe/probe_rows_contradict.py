"""Equal inputs carry different labels, so that no model can learn them all."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence
from mldebug_mcp.text import figure

FLOOR_ROWS, FLOOR_TOKENS = 0.02, 0.10
"""Share of a uniform guess's loss that contradictions leave. Chosen: texts that only begin alike leave up to 6 %."""


@probe_symptom(
    needs=("reference",),
    effects={"label_noise": "usually"},
    background=0.001,
)
def probe_rows_contradict(seen: Measured) -> Evidence | None:
    """Equal inputs carry different labels, so that no model can learn them all.

    Not this when: texts only begin alike (the first words of different rows), or all inputs are the same.
    """
    assert seen.reference is not None
    known = seen.reference
    if seen.distinct_inputs == 1:
        return None
    floor = known.least / (known.variance or known.uniform or 1.0)
    if floor <= (FLOOR_TOKENS if seen.targets == "tokens" else FLOOR_ROWS):
        return None
    rows = ", ".join(map(str, known.contradicting_rows[:10]))
    return Evidence(
        f"rows {rows} have equal inputs and different labels; the loss cannot fall below {figure(known.least)}",
        values={"least_loss": known.least, "rows": len(known.contradicting_rows)},
    )
