"""The loss is NaN or infinite, at once or after some steps."""

from __future__ import annotations

import math

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence
from mldebug_mcp.text import figure


@probe_symptom(
    needs=("initial_loss",),
    effects={
        "invalid_math": "usually",
        "fp16_overflow": "usually",
        "lr_too_high": "sometimes",
        "bad_batch": "sometimes",
        "exploding_gradients": "often",
        "bad_init": "rarely",
        "all_labels_masked": "often",
        "unknown": "rarely",
    },
    background=0.002,
)
def probe_loss_nonfinite(seen: Measured) -> Evidence | None:
    """The loss is NaN or infinite, at once or after some steps."""
    assert seen.initial_loss is not None
    losses = [seen.initial_loss, *(seen.curve.losses if seen.curve else ())]
    step = next((number for number, loss in enumerate(losses) if not math.isfinite(loss)), None)
    if step is None:
        return None
    return Evidence(f"the loss is {figure(losses[step])} at step {step}", steps=(step,))
