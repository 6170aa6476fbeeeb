"""Completions grow toward the limit."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.policy import NOT_POLICY
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.symptoms.statistics import blocks, departure, end_level, monotone, start_level
from mldebug_mcp.text import figure

FACTOR = 2.0
NEAR_LIMIT = 0.7
"""Growth by half is enough where it ends within this share of the limit."""
CUT = 0.5
"""... or, where the limit is not known, where this share of the completions is cut off by it in the end."""
STEADY = 0.8
"""Rank correlation of block medians with time: the growth is steady."""
STAYS = 0.6
"""... or it is over within a third of the log, and this share of it is never lost again."""


@symptom(needs=("completion_length",), sources=("axolotl_stability",), points=20, not_for=NOT_POLICY, background=0.025)
def completion_length_grows(run: Run) -> Evidence | None:
    """The mean length of completions rises steadily, to a multiple or up to the limit.

    Not this when: it wanders; it rises and falls back; it rises and levels off well below the limit after growth of
    less than a factor of two.
    Tasks that need reasoning lengthen answers for good reason: read it with the reward. The factors were chosen by
    hand.
    """
    length = run["completion_length"].finite
    cut = blocks(length.value, 12)
    start, end = start_level(length.value[: max(3, len(length) // 4)]), end_level(length.value)
    limit = run.setting("max_completion_length")
    near = end >= NEAR_LIMIT * limit if limit is not None else _cut_off(run)
    grown = end >= (1.5 if near else FACTOR) * start and end - start > 6 * cut.wobble
    later = cut.level[len(cut.level) // 3 :]
    stays = float(later.min()) >= start + STAYS * (end - start)
    if start <= 0 or not grown or (monotone(cut.level) < STEADY and not stays):
        return None
    onset = float(length.step[departure(length.value, end)])
    beside = f"; the limit is {figure(limit)}" if limit is not None else ""
    return Evidence(
        f"completions grow from {figure(start)} to {figure(end)} tokens, from {run.step_name} {figure(onset)} on"
        f"{beside}",
        steps=(onset,),
        values={"start": start, "end": end, "factor": end / start, **({"limit": limit} if limit is not None else {})},
    )


def _cut_off(run: Run) -> bool:
    """Say whether most of the last completions ended at the limit."""
    name = "completions/clipped_ratio"
    return name in run and len(run[name].finite) > 0 and end_level(run[name].finite.value) >= CUT
