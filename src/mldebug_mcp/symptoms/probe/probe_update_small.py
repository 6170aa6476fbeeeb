"""The user's first step changes the weights by less than a hundred-thousandth of their size."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.common import steps_are_tiny
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence
from mldebug_mcp.text import figure


@probe_symptom(
    needs=("update_ratio", "watched"),
    effects={
        "lr_too_low": "usually",
        "lr_schedule_bug": "rarely",
        "all_labels_masked": "sometimes",
        "params_not_training": "sometimes",
        "clip_too_tight": "sometimes",
    },
    sources=("cs231n_nn3",),
    background=0.005,
)
def probe_update_small(seen: Measured) -> Evidence | None:
    """The user's first step changes the weights by less than a hundred-thousandth of their size."""
    assert seen.update_ratio is not None
    if not steps_are_tiny(seen) or seen.memorised:
        return None
    return Evidence(f"a step changes the weights by {figure(seen.update_ratio)} of their size; about 0.001 is usual")
