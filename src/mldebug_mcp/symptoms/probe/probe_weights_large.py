"""A weight matrix begins with a deviation far above what its width asks for."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence
from mldebug_mcp.text import figure

LARGE = 8.0
"""Chosen: usual schemes lie within a factor of 3 of sqrt(2 / (5 fan_in))."""


@probe_symptom(
    needs=("init",),
    effects={"bad_init": "usually"},
    sources=("bekman_mle",),
    background=0.003,
)
def probe_weights_large(seen: Measured) -> Evidence | None:
    """A weight matrix begins with a deviation far above what its width asks for."""
    assert seen.init is not None
    worst = seen.init.largest[0] if seen.init.largest else None
    if worst is None or worst.factor < LARGE:
        return None
    return Evidence(
        f"{worst.name} begins with a deviation of {figure(worst.std)}; its width asks for {figure(worst.usual_init)}",
        values={"std": worst.std, "usual": worst.usual_init, "factor": worst.factor},
    )
