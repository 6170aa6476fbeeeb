"""The loss fell at first and then stopped well above the goal."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.common import steps_are_tiny, still_falling
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence
from mldebug_mcp.text import figure


@probe_symptom(
    needs=("curve", "memorised"),
    effects={
        "too_little_capacity": "usually",
        "label_noise": "sometimes",
        "wrong_loss": "sometimes",
        "unknown": "often",
        "double_softmax": "usually",
        "rows_mixed": "rarely",
        "weight_decay_too_high": "usually",
        "no_signal": "often",
        "params_not_training": "sometimes",
        "vanishing_gradients": "sometimes",
        "clip_too_tight": "sometimes",
    },
    background=0.01,
)
def probe_stuck(seen: Measured) -> Evidence | None:
    """The loss fell at first and then stopped well above the goal.

    Not this when: the steps are so small that its fall has hardly begun (`probe_update_small`).
    """
    assert seen.curve is not None
    losses = seen.curve.losses
    if seen.memorised or len(losses) < 20 or not losses[-1] < losses[0]:
        return None
    if still_falling(losses) or steps_are_tiny(seen):
        return None
    return Evidence(f"the loss stops at {figure(losses[-1])}, from {figure(losses[0])}")
