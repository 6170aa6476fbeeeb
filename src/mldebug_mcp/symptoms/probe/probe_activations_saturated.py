"""Most outputs of the squashing activations lie where their slope is nearly zero."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence

SATURATED = 0.8
"""Chosen: a tanh of unit-variance inputs saturates on under 1 %."""


@probe_symptom(
    needs=("activations",),
    effects={"vanishing_gradients": "usually", "bad_init": "rarely"},
    background=0.001,
)
def probe_activations_saturated(seen: Measured) -> Evidence | None:
    """Most outputs of the squashing activations lie where their slope is nearly zero."""
    assert seen.activations is not None
    squashing = [one for one in seen.activations if one.op.startswith(("tanh", "sigmoid")) and one.share is not None]
    full = [one for one in squashing if (one.share or 0) > SATURATED]
    if not full or len(full) * 2 < len(squashing) or seen.memorised:
        return None
    worst = max(full, key=lambda one: one.share or 0)
    return Evidence(f"{worst.share:.0%} of the outputs of {worst.op} in {worst.module or 'the model'} are saturated")
