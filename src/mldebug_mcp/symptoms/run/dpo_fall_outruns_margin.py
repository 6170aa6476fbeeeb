"""Chosen answers lose many times what the margin gains."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.symptoms.run.dpo_logps_fall import dpo_logps_fall
from mldebug_mcp.text import figure

OUTRUN = 6.0
"""Times what the margin gains. Sound runs lose about as much on the chosen answers as they gain in margin, some three
times that. Chosen by hand."""
LEAST = 40.0
"""Nats per answer: with that, the chosen answers are all but forgotten. Chosen by hand."""


@symptom(needs=(), sources=("razin_displacement",), background=0.005)
def dpo_fall_outruns_margin(run: Run) -> Evidence | None:
    """The chosen answers lose more than 40 nats, and more than six times what they gain on the rejected ones.

    Not this when: both fall by less, or move apart by a good part of that (`dpo_logps_fall`). Bounds chosen by hand.
    """
    fall = dpo_logps_fall(run)
    if fall is None:
        return None
    lost, gained = -fall.values["chosen"], max(fall.values["margin_gain"], 0.0)
    if lost < LEAST or lost < OUTRUN * gained:
        return None
    return Evidence(
        f"the chosen answers lose {figure(lost)} nats while the margin gains {figure(gained)}",
        steps=fall.steps,
        values={"lost": lost, "gained": gained},
    )
