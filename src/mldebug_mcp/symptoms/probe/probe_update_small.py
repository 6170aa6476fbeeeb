"""The user's first step changes the weights by less than a hundred-thousandth of their size."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence
from mldebug_mcp.text import figure

SMALL = 3e-5
"""A thirtieth of the 1e-3 that cs231n_nn3 gives."""


@probe_symptom(
    needs=("update_ratio", "watched"),
    effects={
        "lr_too_low": "usually",
        "lr_schedule_bug": "sometimes",
        "params_not_training": "sometimes",
        "clip_too_tight": "sometimes",
    },
    sources=("cs231n_nn3",),
    background=0.005,
)
def probe_update_small(seen: Measured) -> Evidence | None:
    """The user's first step changes the weights by less than a hundred-thousandth of their size."""
    assert seen.update_ratio is not None
    if seen.update_ratio >= SMALL or seen.memorised:
        return None
    return Evidence(f"a step changes the weights by {figure(seen.update_ratio)} of their size; about 0.001 is usual")
