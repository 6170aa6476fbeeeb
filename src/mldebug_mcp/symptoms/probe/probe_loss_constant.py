"""The loss does not change at all from step to step."""

from __future__ import annotations

import math

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence
from mldebug_mcp.text import figure


@probe_symptom(
    needs=("curve",),
    effects={
        "all_labels_masked": "often",
        "params_not_training": "often",
        "lr_too_low": "sometimes",
        "lr_schedule_bug": "rarely",
        "vanishing_gradients": "rarely",
        "dead_units": "sometimes",
    },
    background=0.001,
)
def probe_loss_constant(seen: Measured) -> Evidence | None:
    """The loss does not change at all from step to step."""
    assert seen.curve is not None
    losses = seen.curve.losses
    if (
        len(losses) < 3
        or not all(map(math.isfinite, losses))
        or max(losses) - min(losses) > 1e-6 * max(1.0, abs(losses[0]))
    ):
        return None
    return Evidence(f"the loss is {figure(losses[0])} at each of {len(losses)} steps")
