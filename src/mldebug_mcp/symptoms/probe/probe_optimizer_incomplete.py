"""Parameters that get a gradient are in no group of the optimizer."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import CannotTell, Evidence


@probe_symptom(
    needs=("parameters",),
    effects={"params_not_training": "sometimes"},
)
def probe_optimizer_incomplete(seen: Measured) -> Evidence | None:
    """Parameters that get a gradient are in no group of the optimizer.

    Not this when: the batch is memorised all the same, as where a head alone is meant to be trained.
    """
    assert seen.parameters is not None
    share = seen.parameters.not_in_optimizer_share
    if share is None:
        raise CannotTell("the optimizer is the probe's own")
    if not share or (share < 0.9 and seen.memorised):
        return None
    return Evidence(
        f"{share:.0%} of the trainable elements are in no optimizer group: "
        f"{', '.join(seen.parameters.not_in_optimizer[:3])}"
    )
