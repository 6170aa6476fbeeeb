"""Do completions grow, shrink, or end at the limit?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.divergence import stays_near
from mldebug_mcp.measure.policy import NOT_POLICY
from mldebug_mcp.measure.rewards import held_out_scores, rewards_of, trend
from mldebug_mcp.measure.statistics import blocks, departure, end_level, median, monotone, start_level
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.text import counted, figure

SHARE = "completions/clipped_ratio"
LEAST_LENGTHS, LEAST_SHARES, LEAST_OF_ALL, LEAST_SCORES = 20, 3, 5, 4
"""Records of lengths, of the share at the limit, of nothing but the limit, and evaluations. Chosen: by hand."""
FACTOR, NEAR_FACTOR, NEAR_LIMIT, CUT = 2.0, 1.5, 0.7, 0.5
"""Growth; that which is enough where it ends within this share of the limit, or so many are cut off. Chosen: by
hand."""
MOST_WITH_SCORES, WHILE_LEARNING, FEW_CUT = 4.0, 3.0, 0.2
"""Growth below this factor is a remark where scores of evaluation rise with it, or, below the second, the reward near
the reference; and no more than this share is cut off. Chosen: answers that take thought grow so."""
STEADY, STAYS, SIGMAS = 0.8, 0.6, 6.0
"""Rank correlation with time, or the share of the growth that is never lost; times the wobble of levels. Chosen: by
hand."""
SHRUNK = 0.3
"""Of the length at the start. Chosen: a policy that learns a format may well drop half of its words."""
MOST_CUT, PART = 0.8, 0.25
"""Share of completions at the limit, for so much of the log. Source: axolotl_stability."""
ALL, NEARLY_ALWAYS = 0.99, 0.95
"""Share of completions, of records, the first among them. Chosen: under a low limit some are short enough."""


@question(
    Outcome(
        "completion_length_grows",
        """The mean length of completions rises steadily, to a multiple or up to the limit.

        Not this when: it wanders or falls back; it stays clear of the limit while all scores of evaluation rise with
        it, or the reward near the reference (remarks), as in tasks that take thought.""",
        background=0.025,
        sources=("axolotl_stability",),
        needs=("completion_length",),
    ),
    Outcome(
        "completion_length_shrinks",
        """The mean length of completions falls to less than a third of what it was, and stays there.

        Not this when: completions lose some words as a format is learnt; they are short from the start; most hit the
        limit at first, so that the policy only learns to end.""",
        background=0.01,
        needs=("completion_length",),
    ),
    Outcome(
        "completions_truncated",
        """More than 80 % of the completions end at the length limit, for a quarter of the log or up to its end.

        Not this when: single records do; the share is high at the start and comes down for good; it was low at the
        start (`completions_reach_limit`).""",
        background=0.01,
        sources=("axolotl_stability",),
        needs=(SHARE,),
    ),
    Outcome(
        "completions_never_end",
        """No completion ends by itself, in nearly every record from the first on.

        Not this when: a few end earlier, as some do under a limit that is merely low; it comes about in training.""",
        background=0.05,
        sources=("axolotl_faq",),
        needs=(SHARE,),
        as_chosen=True,
        of="completions_truncated",
    ),
    Outcome(
        "completions_reach_limit",
        """Most completions ended by themselves at first, and more than 80 % run into the length limit later.

        Not this when: they did from the start (`completions_truncated`); their length has grown by half
        (`completion_length_grows`).""",
        background=0.01,
        sources=("axolotl_stability",),
        needs=(SHARE,),
    ),
    any_of=("completion_length", SHARE),
    not_for=NOT_POLICY,
)
def completions(run: Run) -> Answers:
    """What the lengths do goes before what the limit does to them, for they may have grown into it."""
    answers: dict[str, Evidence | CannotTell] = {}
    if "completion_length" in run:
        length = run["completion_length"].finite
        if len(length) < LEAST_LENGTHS:
            few = CannotTell(
                f"completion_length has {counted(len(length), 'finite value')} here; {LEAST_LENGTHS} are needed"
            )
            answers = dict.fromkeys(("completion_length_grows", "completion_length_shrinks"), few)
        elif (grows := _grows(run, length)) is not None:
            answers["completion_length_grows"] = grows
            if grows.present:
                return answers
        elif (shrinks := _shrinks(run, length)) is not None:
            return {"completion_length_shrinks": shrinks}
    return {**answers, **_at_limit(run)}


def _at_limit(run: Run) -> Answers:
    share = run[SHARE].finite if SHARE in run else None
    if share is None:
        return {}
    if len(share) < LEAST_SHARES:
        return {"completions_truncated": CannotTell(f"{SHARE} has fewer than {LEAST_SHARES} finite values")}
    truncated = _truncated(run, share)
    if truncated is None:
        return {}
    if start_level(share.value[:LEAST_SHARES]) < CUT:
        return {"completions_reach_limit": truncated}
    never = _never_end(share)
    beside = {} if never is None else {"completions_never_end": never}
    return {"completions_truncated": truncated, **beside}


def _grows(run: Run, length: Series) -> Evidence | None:
    cut = blocks(length.value, 12)
    start, end = start_level(length.value[: max(3, len(length) // 4)]), end_level(length.value)
    limit = run.setting("max_completion_length")
    near = end >= NEAR_LIMIT * limit if limit is not None else _cut_off(run)
    grown = end >= (NEAR_FACTOR if near else FACTOR) * start and end - start > SIGMAS * cut.wobble
    later = cut.level[len(cut.level) // 3 :]
    stays = float(later.min()) >= start + STAYS * (end - start)
    if start <= 0 or not grown or (monotone(cut.level) < STEADY and not stays):
        return None
    onset = float(length.step[departure(length.value, end)])
    beside = f"; the limit is {figure(limit)}" if limit is not None else ""
    serves = end < MOST_WITH_SCORES * start and _has_room(run, end, limit) and _scores_rise(run)
    learns = end < WHILE_LEARNING * start and _has_room(run, end, limit) and stays_near(run) and _earns(run) > 0
    beside += "; the scores of evaluation rise with it" if serves else "; the reward rises with it" if learns else ""
    return Evidence(
        f"completions grow from {figure(start)} to {figure(end)} tokens, from {run.step_name} {figure(onset)} on"
        f"{beside}{'' if serves or learns else _reward_beside(run)}",
        steps=(onset,),
        values={"start": start, "end": end, "factor": end / start, **({"limit": limit} if limit is not None else {})},
        present=not (serves or learns),
    )


def _shrinks(run: Run, length: Series) -> Evidence | None:
    cut = blocks(length.value, 12)
    start, end = start_level(length.value), end_level(length.value)
    if not 0 <= end < SHRUNK * start or start - end < SIGMAS * cut.wobble or _was_cut(run):
        return None
    onset = float(length.step[departure(length.value, end)])
    return Evidence(
        f"completions shrink from {figure(start)} to {figure(end)} tokens, from {run.step_name} {figure(onset)} on"
        f"{_reward_beside(run)}",
        steps=(onset,),
        values={"start": start, "end": end, "factor": end / start},
    )


def _truncated(run: Run, share: Series) -> Evidence | None:
    cut = blocks(share.value, 12)
    high = cut.level > MOST_CUT
    came_down = not high[-max(1, len(high) // 4) :].any()
    if came_down or (not high[-1] and high.mean() < PART):
        return None
    first = int(cut.first[int(np.argmax(high))])
    onset = float(share.step[min(first, departure(share.value, 1.0)) if first else 0])
    since = median(share.value[share.step >= onset])
    return Evidence(
        f"{since:.0%} of the completions end at the limit from {run.step_name} {figure(onset)} on; "
        f"at the start {start_level(share.value):.0%}{_reward_beside(run)}",
        steps=(onset,),
        values={
            "median": median(share.value),
            "start": start_level(share.value),
            "share_of_log": float(high.mean()),
        },
    )


def _never_end(share: Series) -> Evidence | None:
    if len(share) < LEAST_OF_ALL or share.value[0] < ALL or float((share.value >= ALL).mean()) < NEARLY_ALWAYS:
        return None
    return Evidence(
        f"{median(share.value):.0%} of the completions run to the limit in all but "
        f"{figure(int((share.value < ALL).sum()))} of {len(share)} records, the first among them",
        steps=(float(share.step[0]),),
        values={"records": len(share)},
    )


def _reward_beside(run: Run) -> str:
    """Return what the reward does meanwhile: the same lengths mean another thing where it rises with them."""
    rewards = rewards_of(run)
    if rewards is None or len(rewards) < LEAST_SHARES:
        return ""
    start, end = start_level(rewards.value), end_level(rewards.value)
    return f"; the reward goes from {figure(start)} to {figure(end)} meanwhile"


def _earns(run: Run) -> float:
    rewards = rewards_of(run)
    return 0.0 if rewards is None else trend(rewards)


def _cut_off(run: Run) -> bool:
    """Say whether most of the last completions ended at the limit."""
    return (_share_cut(run) or 0.0) >= CUT


def _has_room(run: Run, end: float, limit: float | None) -> bool:
    """Say whether the last completions are known to stay clear of the limit."""
    share = _share_cut(run)
    return (limit is None or end < limit / 2) and share is not None and share < FEW_CUT


def _scores_rise(run: Run) -> bool:
    scores = held_out_scores(run, LEAST_SCORES)
    return bool(scores) and all(trend(one) > 0 for one in scores)


def _was_cut(run: Run) -> bool:
    """Say whether half of the first completions ended at the limit."""
    return SHARE in run and len(run[SHARE].finite) > 0 and start_level(run[SHARE].finite.value) > CUT


def _share_cut(run: Run) -> float | None:
    return end_level(run[SHARE].finite.value) if SHARE in run and len(run[SHARE].finite) else None
