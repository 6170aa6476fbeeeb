"""Gradients of many parameters lie six orders of magnitude below the largest, and the batch is not memorised."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence

LEAST_SHARE = 0.2
"""Of the trainable elements. Chosen: eight sigmoid layers, which stop learning, have it in their first three."""


@probe_symptom(
    needs=("gradients",),
    effects={"vanishing_gradients": "often", "bad_init": "rarely"},
    background=0.002,
)
def probe_gradient_vanishing(seen: Measured) -> Evidence | None:
    """Gradients of many parameters lie six orders of magnitude below the largest, and the batch is not memorised."""
    assert seen.gradients is not None
    share = seen.gradients.tiny_share + seen.gradients.zero_share * (seen.gradients.zero_share < 1)
    if seen.gradients.tiny_share == 0 or share < LEAST_SHARE or seen.memorised:
        return None
    return Evidence(f"{share:.0%} of the trainable elements have tiny gradients: {', '.join(seen.gradients.tiny[:3])}")
