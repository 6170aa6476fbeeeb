"""The loss ends far above its start."""

from __future__ import annotations

import math

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence
from mldebug_mcp.text import figure


@probe_symptom(
    needs=("curve",),
    effects={
        "lr_too_high": "often",
        "wrong_loss": "sometimes",
        "missing_zero_grad": "sometimes",
        "exploding_gradients": "often",
    },
    background=0.005,
)
def probe_loss_rises(seen: Measured) -> Evidence | None:
    """The loss ends far above its start."""
    assert seen.curve is not None
    losses = [loss for loss in seen.curve.losses if math.isfinite(loss)]
    if len(losses) < 3 or losses[-1] <= losses[0] + 0.2 * abs(losses[0]):
        return None
    return Evidence(
        f"the loss rises from {figure(losses[0])} to {figure(losses[-1])} in {len(losses)} steps",
        steps=(len(losses),),
    )
