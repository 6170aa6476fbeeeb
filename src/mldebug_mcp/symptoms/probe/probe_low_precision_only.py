"""A non-finite value in half precision that is not there in 32 bits."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.common import low_precision_alone
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence


@probe_symptom(
    needs=("first_nonfinite",),
    effects={"fp16_overflow": "always"},
)
def probe_low_precision_only(seen: Measured) -> Evidence | None:
    """A non-finite value in half precision that is not there in 32 bits."""
    assert seen.first_nonfinite is not None
    if not low_precision_alone(seen):
        return None
    bad = seen.first_nonfinite
    return Evidence(
        f"{bad.op} in {bad.module or 'the loss'} gives a non-finite {bad.dtype or 'value'}; in 32 bits all is finite"
    )
