"""The loss was still falling when the steps were up."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.common import still_falling, was_cut_short
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure


@probe_symptom(
    needs=("curve", "memorised"),
    effects={
        "lr_too_low": "often",
        "clip_too_tight": "often",
        "too_little_capacity": "sometimes",
        "exploding_gradients": "rarely",
        "vanishing_gradients": "often",
        "bad_init": "sometimes",
        "unknown": "sometimes",
    },
    background=0.01,
)
def probe_loss_still_falling(seen: Measured) -> Evidence | None:
    """The loss was still falling when the steps were up.

    Not this when: the probe's own loop ran out of time, not of steps.
    """
    assert seen.curve is not None
    if seen.memorised or not still_falling(seen.curve.losses):
        return None
    if was_cut_short(seen):
        raise CannotTell(f"time was up after {len(seen.curve.losses)} steps")
    return Evidence(
        f"the loss is {figure(seen.curve.losses[-1])} at the last of {len(seen.curve.losses)} steps and falling"
    )
