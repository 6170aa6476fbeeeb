"""Most units of a rectifier give zero for every row."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence

DEAD = 0.9
"""Chosen: a small batch leaves up to half of the units of a sound layer at zero."""


@probe_symptom(
    needs=("activations",),
    effects={"dead_units": "usually"},
)
def probe_units_dead(seen: Measured) -> Evidence | None:
    """Most units of a rectifier give zero for every row."""
    assert seen.activations is not None
    dead = [one for one in seen.activations if one.op.startswith("relu") and (one.share or 0) > DEAD]
    if not dead or seen.memorised:
        return None
    worst = max(dead, key=lambda one: one.share or 0)
    return Evidence(
        f"{worst.share:.0%} of the units of {worst.op} in {worst.module or 'the model'} are zero for all rows"
    )
