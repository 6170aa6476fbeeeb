"""Completions grow toward the limit."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.policy import NOT_POLICY, held_out_scores, is_rewarded, reward, trend
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.symptoms.run.kl_high import kl_high
from mldebug_mcp.symptoms.statistics import blocks, departure, end_level, monotone, start_level
from mldebug_mcp.text import figure

FACTOR = 2.0
NEAR_LIMIT = 0.7
"""Growth by half is enough where it ends within this share of the limit."""
MOST_WITH_SCORES, FEW_CUT = 4.0, 0.2
"""Growth below this factor is a remark where every score of evaluation rises with it, the length ends below half of the
limit and no more than this share is cut off: answers to problems that take thought grow so. Chosen by hand."""
LEAST_SCORES = 4
WHILE_LEARNING = 3.0
"""... and below this factor where the reward rises instead, and the policy is not known to run away (`kl_high`)."""
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
    less than a factor of two; it stays clear of the limit while all scores of evaluation rise with it, or, up to a
    factor of three, the reward beside a KL that is logged and stays low (remarks).
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
    serves = end < MOST_WITH_SCORES * start and _has_room(run, end, limit) and _scores_rise(run)
    learns = end < WHILE_LEARNING * start and _has_room(run, end, limit) and _learns_nearby(run)
    beside += "; the scores of evaluation rise with it" if serves else "; the reward rises with it" if learns else ""
    return Evidence(
        f"completions grow from {figure(start)} to {figure(end)} tokens, from {run.step_name} {figure(onset)} on"
        f"{beside}",
        steps=(onset,),
        values={"start": start, "end": end, "factor": end / start, **({"limit": limit} if limit is not None else {})},
        present=not (serves or learns),
    )


def _cut_off(run: Run) -> bool:
    """Say whether most of the last completions ended at the limit."""
    return (_share_cut(run) or 0.0) >= CUT


def _has_room(run: Run, end: float, limit: float | None) -> bool:
    """Say whether the last completions are known to stay clear of the limit."""
    share = _share_cut(run)
    return (limit is None or end < limit / 2) and share is not None and share < FEW_CUT


def _learns_nearby(run: Run) -> bool:
    """Say whether the reward rises while the policy is known to stay near its reference."""
    rewarded = is_rewarded(run)
    return rewarded and "kl" in run and kl_high(run) is None and trend(reward(run)) > 0


def _scores_rise(run: Run) -> bool:
    scores = held_out_scores(run, LEAST_SCORES)
    return bool(scores) and all(trend(one) > 0 for one in scores)


def _share_cut(run: Run) -> float | None:
    name = "completions/clipped_ratio"
    return end_level(run[name].finite.value) if name in run and len(run[name].finite) else None
