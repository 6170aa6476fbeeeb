"""The configured weight decay is above the usual."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

USUAL = 0.1
"""Axolotl: 0.01 is usually fine, values above 0.1 can suppress learning; large pretraining runs use 0.1."""
FACTOR = 2.0


@symptom(
    needs=(), sources=("axolotl_stability",), whole_run=True, not_for=("diffusion",), background=0.02, as_chosen=True
)
def weight_decay_high(run: Run) -> Evidence | None:
    """The configured weight decay is twice what is usual, or more.

    Not this when: the optimizer takes larger values by design (Lion), or the configuration does not say. The factor was
    chosen by hand.
    """
    decay = run.setting("weight_decay")
    if decay is None:
        raise CannotTell("weight_decay is not in the configuration")
    if "lion" in str(run.config.get("optim", "")).lower() or decay < FACTOR * USUAL:
        return None
    return Evidence(
        f"weight_decay is {figure(decay)}; 0.01 to {figure(USUAL)} is usual", values={"weight_decay": decay}
    )
