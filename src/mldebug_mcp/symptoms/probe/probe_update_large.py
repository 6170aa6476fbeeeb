"""The user's first step changes the weights by a large part of their size."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence
from mldebug_mcp.text import figure

LARGE = 0.2
"""Of the weights that a step changes them by. Chosen: two hundred times the 1e-3 that cs231n_nn3 gives."""


@probe_symptom(
    needs=("update_ratio", "watched"),
    effects={"lr_too_high": "usually", "exploding_gradients": "sometimes"},
    sources=("cs231n_nn3",),
    background=0.01,
)
def probe_update_large(seen: Measured) -> Evidence | None:
    """The user's first step changes the weights by a large part of their size."""
    assert seen.update_ratio is not None
    if seen.update_ratio < LARGE or seen.memorised:
        return None
    return Evidence(f"a step changes the weights by {figure(seen.update_ratio)} of their size; about 0.001 is usual")
