"""Do completions grow, shrink, or end at the limit?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.divergence import stays_near
from mldebug_mcp.measure.policy import NOT_POLICY
from mldebug_mcp.measure.rewards import held_out_scores, rewards_of, trend
from mldebug_mcp.measure.statistics import blocks, departure, end_level, median, monotone, start_level
from mldebug_mcp.measure.unknown import require_values
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import by_outcome, first_seen, with_attribute
from mldebug_mcp.text import figure

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


def completion_length_grows(run: Run, share: Series) -> Evidence | None:
    """The mean length of completions rises steadily, to a multiple or up to the limit.

    Not this when: it wanders or falls back; it stays clear of the limit while all scores of evaluation rise with
    it, or the reward near the reference (remarks), as in tasks that take thought.
    """
    length = require_values(run["completion_length"].finite, LEAST_LENGTHS)
    cut, start, end = blocks(length.value, 12), start_level(length.value[: len(length) // 4]), end_level(length.value)
    limit, cut_off = run.setting("max_completion_length"), end_level(share.value) if len(share) else None
    near = end >= NEAR_LIMIT * limit if limit is not None else (cut_off or 0.0) >= CUT
    grown = end >= (NEAR_FACTOR if near else FACTOR) * start and end - start > SIGMAS * cut.wobble
    stays = float(cut.level[len(cut.level) // 3 :].min()) >= start + STAYS * (end - start)
    if start <= 0 or not grown or (monotone(cut.level) < STEADY and not stays):
        return None
    has_room = (limit is None or end < limit / 2) and cut_off is not None and cut_off < FEW_CUT
    serves = _serves(run, end / start) if has_room else ""
    beside = f"; the limit is {figure(limit)}" if limit is not None else ""
    return _change(run, start, end, beside=beside + serves, present=not serves)


def _serves(run: Run, factor: float) -> str:
    """Say what rises with the length, so that it may be thought that the task takes."""
    scores, rewards = held_out_scores(run, LEAST_SCORES), rewards_of(run)
    if factor < MOST_WITH_SCORES and scores and all(trend(one) > 0 for one in scores):
        return "; the scores of evaluation rise with it"
    learns = factor < WHILE_LEARNING and stays_near(run) and rewards is not None and trend(rewards) > 0
    return "; the reward rises with it" if learns else ""


def completion_length_shrinks(run: Run, share: Series) -> Evidence | None:
    """The mean length of completions falls to less than a third of what it was, and stays there.

    Not this when: completions lose some words as a format is learnt; they are short from the start; most hit the
    limit at first, so that the policy only learns to end.
    """
    length = require_values(run["completion_length"].finite, LEAST_LENGTHS)
    start, end, wobble = start_level(length.value), end_level(length.value), blocks(length.value, 12).wobble
    was_cut = len(share) > 0 and start_level(share.value) > CUT
    if not 0 <= end < SHRUNK * start or start - end < SIGMAS * wobble or was_cut:
        return None
    return _change(run, start, end, beside="", present=True)


def _change(run: Run, start: float, end: float, *, beside: str, present: bool) -> Evidence:
    length, how = run["completion_length"].finite, "grow" if end > start else "shrink"
    onset = float(length.step[departure(length.value, end)])
    return Evidence(
        f"completions {how} from {figure(start)} to {figure(end)} tokens, from {run.place(onset)} on"
        f"{beside}{_reward_beside(run)}",
        steps=(onset,),
        values={"start": start, "end": end, "factor": end / start},
        present=present,
    )


def completions_truncated(run: Run, share: Series) -> Evidence | None:
    """More than 80 % of the completions end at the length limit, for a quarter of the log or up to its end.

    Not this when: single records do; the share is high at the start and comes down for good; it was low at the
    start (`completions_reach_limit`).
    """
    return _at_limit(run, share)


def completions_never_end(truncated: Evidence, share: Series) -> Evidence | None:
    """No completion ends by itself, in nearly every record from the first on.

    Not this when: a few end earlier, as some do under a limit that is merely low; it comes about in training.
    """
    always = len(share) >= LEAST_OF_ALL and share.value[0] >= ALL and (share.value >= ALL).mean() >= NEARLY_ALWAYS
    return truncated if always else None


def completions_reach_limit(run: Run, share: Series) -> Evidence | None:
    """Most completions ended by themselves at first, and more than 80 % run into the length limit later.

    Not this when: they did from the start (`completions_truncated`); their length has grown by half
    (`completion_length_grows`).
    """
    return _at_limit(run, share)


def _at_limit(run: Run, share: Series) -> Evidence | None:
    if len(share) < LEAST_SHARES:
        raise CannotTell(f"{SHARE} has fewer than {LEAST_SHARES} finite values")
    cut = blocks(share.value, 12)
    high = cut.level > MOST_CUT
    came_down = not high[-max(1, len(high) // 4) :].any()
    if came_down or (not high[-1] and high.mean() < PART):
        return None
    first = int(cut.first[int(np.argmax(high))])
    onset = float(share.step[min(first, departure(share.value, 1.0)) if first else 0])
    since, start = median(share.value[share.step >= onset]), start_level(share.value)
    return Evidence(
        f"{since:.0%} of the completions end at the limit from {run.place(onset)} on; "
        f"at the start {start:.0%}{_reward_beside(run)}",
        steps=(onset,),
        values={"median": median(share.value), "start": start, "share_of_log": float(high.mean())},
    )


def _reward_beside(run: Run) -> str:
    """Return what the reward does meanwhile: the same lengths mean another thing where it rises with them."""
    rewards = rewards_of(run)
    if rewards is None or len(rewards) < LEAST_SHARES:
        return ""
    start, end = start_level(rewards.value), end_level(rewards.value)
    return f"; the reward goes from {figure(start)} to {figure(end)} meanwhile"


@question(
    outcome_of(completion_length_grows, 0.025, "axolotl_stability", needs=("completion_length",)),
    outcome_of(completion_length_shrinks, 0.01, needs=("completion_length",)),
    outcome_of(completions_truncated, 0.01, "axolotl_stability", needs=(SHARE,)),
    outcome_of(completions_never_end, 0.05, "axolotl_faq", needs=(SHARE,), as_chosen=True, of="completions_truncated"),
    outcome_of(completions_reach_limit, 0.01, "axolotl_stability", needs=(SHARE,)),
    any_of=("completion_length", SHARE),
    not_for=NOT_POLICY,
)
def completions(run: Run) -> Answers:
    """What the lengths do goes before what the limit does to them, for they may have grown into it."""
    share = run[SHARE].finite if SHARE in run else Series(SHARE, np.empty(0), np.empty(0))
    at_first = start_level(share.value[:LEAST_SHARES]) if len(share) else 0.0
    at_limit = completions_truncated if at_first >= CUT else completions_reach_limit
    of_length = (completion_length_grows, completion_length_shrinks) if "completion_length" in run else ()
    answers = first_seen(by_outcome((*of_length, at_limit), run, share))
    return with_attribute(answers, "completions_truncated", completions_never_end, share)
