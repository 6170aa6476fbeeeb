"""Completions shrink to a fraction."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.policy import NOT_POLICY
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.symptoms.statistics import blocks, departure, end_level, start_level
from mldebug_mcp.text import figure

SHARE = 0.3
"""Of the length at the start. A policy that learns a format may well drop half of its words. Chosen by hand."""


@symptom(needs=("completion_length",), points=20, not_for=NOT_POLICY, background=0.01)
def completion_length_shrinks(run: Run) -> Evidence | None:
    """The mean length of completions falls to less than a third of what it was, and stays there.

    Not this when: completions lose some words as a format is learnt; they are short from the start; most hit the limit
    at first, so that the policy only learns to end.
    """
    length = run["completion_length"].finite
    cut = blocks(length.value, 12)
    start, end = start_level(length.value), end_level(length.value)
    if not 0 <= end < SHARE * start or start - end < 6 * cut.wobble or _was_cut(run):
        return None
    onset = float(length.step[departure(length.value, end)])
    return Evidence(
        f"completions shrink from {figure(start)} to {figure(end)} tokens, from {run.step_name} {figure(onset)} on",
        steps=(onset,),
        values={"start": start, "end": end, "factor": end / start},
    )


def _was_cut(run: Run) -> bool:
    """Say whether half of the first completions ended at the limit."""
    name = "completions/clipped_ratio"
    return name in run and len(run[name].finite) > 0 and start_level(run[name].finite.value) > 0.5
