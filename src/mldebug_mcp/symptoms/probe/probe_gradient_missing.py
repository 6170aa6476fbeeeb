"""A large share of the trainable parameters gets no gradient at all."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence

LARGE = 0.2
"""Chosen: an unused pooler or head stays below."""


@probe_symptom(
    needs=("gradients",),
    effects={"params_not_training": "sometimes"},
)
def probe_gradient_missing(seen: Measured) -> Evidence | None:
    """A large share of the trainable parameters gets no gradient at all."""
    assert seen.gradients is not None
    if seen.gradients.none_share < LARGE:
        return None
    names = ", ".join(seen.gradients.none[:3])
    return Evidence(
        f"{seen.gradients.none_share:.0%} of the trainable elements get no gradient: {names}",
        values={"share": seen.gradients.none_share},
    )
