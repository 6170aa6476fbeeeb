"""Most trainable elements did not move at all, and the batch is not memorised."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence


@probe_symptom(
    needs=("movement",),
    effects={
        "all_labels_masked": "often",
        "params_not_training": "often",
        "lr_too_low": "sometimes",
        "lr_schedule_bug": "rarely",
        "dead_units": "often",
        "vanishing_gradients": "rarely",
    },
    background=0.002,
)
def probe_parameters_still(seen: Measured) -> Evidence | None:
    """Most trainable elements did not move at all, and the batch is not memorised."""
    assert seen.movement is not None
    if seen.movement.still_share < 0.5 or seen.memorised:
        return None
    return Evidence(
        f"{seen.movement.still_share:.0%} of the trainable elements did not move: {', '.join(seen.movement.still[:3])}"
    )
