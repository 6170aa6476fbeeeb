"""The first gradient is thousands of times as large as usual."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence
from mldebug_mcp.text import figure

LARGE = 1000.0
"""Chosen: norms of 0.1 to 10 are usual at the start, whatever the width."""


@probe_symptom(
    needs=("gradients",),
    effects={"exploding_gradients": "usually", "bad_init": "usually"},
    background=0.005,
)
def probe_gradient_exploding(seen: Measured) -> Evidence | None:
    """The first gradient is thousands of times as large as usual."""
    assert seen.gradients is not None
    if seen.gradients.norm < LARGE * max(1.0, abs(seen.initial_loss or 0.0)):
        return None
    return Evidence(
        f"the norm of the first gradient is {figure(seen.gradients.norm)}", values={"norm": seen.gradients.norm}
    )
