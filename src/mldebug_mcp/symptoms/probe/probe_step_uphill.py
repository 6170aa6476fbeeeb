"""The user's step moves the parameters up the slope of the user's loss."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

UPHILL = 0.1
"""Chosen: Adam's first step, near the sign of the slope, has a cosine of -0.3 to -0.8."""


@probe_symptom(
    needs=("watched",),
    effects={"wrong_loss": "sometimes"},
)
def probe_step_uphill(seen: Measured) -> Evidence | None:
    """The user's step moves the parameters up the slope of the user's loss."""
    assert seen.watched is not None
    if seen.watched.uphill is None:
        raise CannotTell("no step moved a parameter")
    if seen.watched.uphill < UPHILL:
        return None
    return Evidence(f"the first step goes up the loss: cosine {figure(seen.watched.uphill)} with its slope")
