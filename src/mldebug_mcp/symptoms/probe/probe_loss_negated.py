"""The loss is a usual one with the wrong sign."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence


@probe_symptom(
    needs=("loss_formula",),
    effects={"wrong_loss": "sometimes"},
)
def probe_loss_negated(seen: Measured) -> Evidence | None:
    """The loss is a usual one with the wrong sign."""
    assert seen.loss_formula is not None
    return (
        Evidence(f"the loss equals minus {seen.loss_formula.removeprefix('negated ')}")
        if "negated" in seen.loss_formula
        else None
    )
