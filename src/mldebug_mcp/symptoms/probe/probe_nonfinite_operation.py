"""An operation makes NaN or infinity out of finite values at the very first pass, in full precision."""

from __future__ import annotations

import math

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.common import low_precision_alone
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import CannotTell, Evidence


@probe_symptom(
    needs=("first_nonfinite",),
    effects={"invalid_math": "always"},
)
def probe_nonfinite_operation(seen: Measured) -> Evidence | None:
    """An operation makes NaN or infinity out of finite values at the very first pass, in full precision.

    Not this when: the precision is low, the batch or the parameters hold it already, or no label is trained on.
    """
    assert seen.first_nonfinite is not None
    bad = seen.first_nonfinite
    if seen.trained_labels == 0 or not seen.inputs_finite or (seen.parameters and seen.parameters.nonfinite_at_start):
        raise CannotTell("the inputs, parameters or labels leave no finite result")
    if low_precision_alone(seen) or (
        seen.curve is not None and math.isfinite(seen.initial_loss or 0.0) and bad.direction == "forward"
    ):
        return None
    where = " ".join(
        filter(None, (bad.op, f"in {bad.module}" if bad.module else "", f"({bad.where})" if bad.where else ""))
    )
    return Evidence(f"{bad.direction}: {where} gives a non-finite value from finite ones")
