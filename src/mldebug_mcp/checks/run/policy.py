"""Does a policy keep its entropy, distance and length of completions, and what do rewards and values of a critic do?"""

from __future__ import annotations

import re
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.checks.check import (
    NO_REWARD,
    Answers,
    CannotTell,
    Evidence,
    answer_of,
    answers_of,
    by_outcome,
    first_seen,
    known,
    outcome_of,
    question,
    require_values,
    some,
    symptom,
    too_few,
    with_attribute,
)
from mldebug_mcp.checks.curve import (
    CLEAR_SIGMAS,
    LEAST_FOR_COURSE,
    LEAST_FOR_LEVEL,
    Blocks,
    aligned,
    blocks,
    departure,
    drift,
    end_level,
    finite_of,
    highest_level,
    median_of_three,
    monotone,
    noise,
    start_level,
    true_at_end,
)
from mldebug_mcp.checks.policies import (
    ENTROPIES,
    EXPLORATION,
    MAX_FINAL_RANDOM_SHARE,
    MAX_FIRST_RECORDS,
    MAX_LATER_REWARD_SHARE,
    MIN_DIVERGENCE_RECORDS,
    NOT_POLICY,
    PER_UPDATE,
    REWARDS,
    TEXT_POLICIES,
    Divergence,
    Standing,
    averaged,
    chance_ends,
    components,
    cost,
    divergences,
    earns_all_at_once,
    entropy,
    from_the_start,
    held_out_scores,
    is_solved,
    judged_scores,
    kept_rise,
    lost_at_once,
    never_succeeds,
    require_policy,
    reward,
    rewards_of,
    scores_beside,
    seems_to_learn,
    sinks,
    standing,
    stays_near,
    swings,
    trend,
)
from mldebug_mcp.core.arrays import median, quantile
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.core.text import counted, figure, ratio, shorten
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.run import Run, Series

# How far does the policy go from where it was, and do the weights that sampled agree with those that are trained?


NO_KL = 0.05
"""KL below this is not part of a rise. Chosen: healthy runs reach it."""
MAX_UPDATE_KL = 0.3
"""KL of a single update that is too large. Chosen: beyond the scatter of healthy updates."""
JUMP_FACTOR = 5.0
"""Times the median that it is. Chosen: beyond the scatter of healthy updates."""
TIMES_AT_ONCE = 10.0
"""Times the limit, for which one record is enough. Chosen: by hand."""
RUNS_AWAY = 10.0
"""Times the limit. Chosen: estimates of a few rare tokens do not keep so much."""
MOVES = ("approx_kl", "kl", "clip_ratio")
"""What is above zero as soon as a policy has taken one step away from the one that sampled, or from its reference."""
STILL_RECORDS = 10
"""Records of a policy that stands still. Chosen: by hand."""
MAX_ROUNDING_DIVERGENCE = 1e-6
"""What float32 leaves of the divergence of two equal policies. Chosen: a usual update is a thousand times as large."""
SHOWN_BY = ("entropy", "reward")
"""What changes for good only where the policy does."""
RATIOS = {
    "sampling/importance_sampling_ratio/min": (0.01, np.inf),
    "sampling/sampling_logp_difference/mean": (-1.0, 1.0),
    "policy_ratio": (0.5, 2.0),
    "sampling/importance_sampling_ratio/mean": (0.5, 2.0),
}
"""Ranges of ratios between the weights that sampled and those that are trained. Source: axolotl_stability."""
APART = {
    "train_rollout_logprob_abs_diff": (-np.inf, 0.1),
    "rollout_probs_diff_mean": (-np.inf, 0.05),
    "rollout_actor_probs_pearson_corr": (0.9, np.inf),
    "vllm_kl": (-np.inf, PER_UPDATE),
    "rollout_corr/kl": (-np.inf, PER_UPDATE),
    "rollout_corr/k3_kl": (-np.inf, PER_UPDATE),
    "mismatch/mismatch_kl": (-np.inf, PER_UPDATE),
    "train_rollout_kl": (-np.inf, PER_UPDATE),
}
"""Ranges of how far the probabilities of sampler and trainer are apart, as slime, verl and OpenRLHF log it.

Source: slime's own tests fail beyond a difference of 0.1 nats. Chosen: in bf16 probabilities differ by about 0.003 and
with a sampler in fp8 by 0.012, at a correlation above 0.99; a KL as large as that of an update that is too large.
"""
MOVED = ("kl", "approx_kl", "loss_kl", "clip_ratio", *RATIOS, *(f"*{end}" for end in APART))
"""What shows how far a policy goes from where it was."""
LEAST_RATIOS = 3
"""Records of a ratio. Chosen: as many as make a level."""
MAX_CLIPPED_SHARE = 0.3
"""Share of the ratios that is clipped. Source: axolotl_stability."""
CLIPPED_RL = 0.5
"""The same in small environments, which learn with 0.3 to 0.4. Source: axolotl_stability."""
MIN_CLIPPED_RECORD_SHARE = 0.2
"""Share of the records in which so much is clipped. Chosen: a policy that finds its task moves fast for a while."""


@symptom(any_of=MOVED, sources=("axolotl_stability", "trl_docs"), not_for=NOT_POLICY, background=0.006)
def importance_ratio_off(run: Run) -> Evidence | None:
    """The weights that sampled and those that are trained give clearly different probabilities to the same tokens.

    Not this when: single records are off; the largest ratio alone is large (a maximum over many tokens).
    """
    ranges = {name: RATIOS[name] for name in RATIOS if name in run}
    ranges |= {name: bounds for name in run.series for end, bounds in APART.items() if f"/{name}".endswith(f"/{end}")}
    # Where nothing was compared, verl logs zeros.
    logged = [name for name in ranges if len(run[name].finite) >= LEAST_RATIOS and run[name].finite.value.any()]
    if not logged:
        raise CannotTell(f"no ratio of sampling to training has {LEAST_RATIOS} finite values")
    judged = (_out_of_range_evidence(run, run[name].finite, *ranges[name]) for name in logged)
    return next((evidence for evidence in judged if evidence is not None), None)


def _out_of_range_evidence(run: Run, series: Series, low: float, high: float) -> Evidence | None:
    cut = blocks(series.value, 12)
    off = (cut.level < low) | (cut.level > high)
    if not off.any():
        return None
    onset = float(series.step[int(cut.first[int(np.argmax(off))])])
    worst = float(cut.level[off].min() if (cut.level < low).any() else cut.level[off].max())
    return Evidence(
        f"{series.name} keeps a level of {figure(worst)} from {run.place(onset)} on, "
        f"in {off.mean():.0%} of the log; its median is {figure(median(series.value))}",
        steps=(onset,),
        values={"level": worst, "share_of_log": float(off.mean()), "median": median(series.value)},
    )


def clip_ratio_high(run: Run) -> Evidence | None:
    """A large share of the probability ratios is clipped, for a stretch of records.

    Not this when: single records jump, or few while a policy first learns; all ratios are one because each sample is
    used once (then it is zero).
    """
    ratio = finite_of(run, "clip_ratio")
    if len(ratio) < MIN_DIVERGENCE_RECORDS:
        raise CannotTell(f"clip_ratio has fewer than {MIN_DIVERGENCE_RECORDS} finite values")
    limit = CLIPPED_RL if run.kind == "rl" else MAX_CLIPPED_SHARE
    kept, at = highest_level(ratio.value)
    if kept <= limit or float((ratio.value > limit).mean()) < MIN_CLIPPED_RECORD_SHARE:
        return None
    onset, typical = float(ratio.step[at]), median(ratio.value)
    return Evidence(
        f"clip_ratio keeps a level of {figure(kept)} from {run.place(onset)} on; its median over "
        f"the log is {figure(typical)}",
        steps=(onset,),
        values={"level": kept, "median": typical, "limit": limit},
    )


def kl_high(run: Run) -> Evidence | None:
    """The KL divergence of the policy from its reference, or from before the update, is far too large.

    Not this when: single records jump and come back, as one rare token makes an estimate do; KL is summed over the
    tokens of a completion, for which the limit is higher.
    """
    require_policy(run)
    logged = some(divergences(run), "not logged: kl or approx_kl")
    judged = [evidence for divergence in logged if (evidence := _judge(run, divergence)) is not None]
    return max(judged, key=lambda evidence: evidence.present, default=None)


def _judge(run: Run, divergence: Divergence) -> Evidence | None:
    series, value = divergence.series, divergence.series.value
    few, typical, peak = len(series) < MIN_DIVERGENCE_RECORDS, median(value), int(np.argmax(value))
    if few and typical <= TIMES_AT_ONCE * divergence.limit:
        raise too_few(series.name, len(series), MIN_DIVERGENCE_RECORDS)
    kept = typical if few else highest_level(value)[0]
    if kept > divergence.limit:
        return _sustained(run, divergence, kept)
    top, at = float(value[peak]), float(series.step[peak])
    of_one = divergence.of_update and top > MAX_UPDATE_KL and top > JUMP_FACTOR * typical
    if not of_one and top <= divergence.limit:
        return None
    return Evidence(
        f"{series.name} ({divergence.what}) reaches {figure(top)} at {run.place(at)} and comes back; its "
        f"median is {figure(typical)}",
        steps=(at,),
        values={"peak": top, "median": typical, "limit": divergence.limit},
        present=of_one,
    )


def kl_runs_away(far: Evidence) -> Evidence | None:
    """The KL divergence comes to ten times what is far too large already.

    Not this when: it is a few times above; it jumps and comes back.
    """
    level = far.values.get("level") or 0.0
    return far if level > RUNS_AWAY * (far.values["limit"] or level) else None


def _sustained(run: Run, divergence: Divergence, level: float) -> Evidence:
    series, above = divergence.series, divergence.series.value > divergence.limit
    # The first of two values in a row that exceed the limit.
    first = float(series.step[int(np.argmax(above & np.append(above[1:], True)))])
    # KL runs away exponentially: its departure is seen in the logarithm.
    onset = min(first, float(series.step[departure(np.log(np.maximum(series.value, NO_KL)), np.log(level))]))
    paid, end = None if divergence.of_update else cost(run, float(series.value[-1])), float(series.value[-1])
    cost_clause = "" if paid is None else f", which costs {figure(paid)} of reward at the coefficient that is set"
    return Evidence(
        f"{series.name} ({divergence.what}) exceeds {figure(divergence.limit)} from {run.place(first)} on and "
        f"reaches a level of {figure(level)}; it begins to rise at {run.place(onset)}, from "
        f"{figure(series.value[0])} at first, and ends at {figure(end)}{cost_clause}",
        steps=(onset, first),
        values={"level": level, "end": end, "limit": divergence.limit, **({} if paid is None else {"cost": paid})},
    )


def policy_stands_still(run: Run) -> Evidence | None:
    """The divergence of the policy from where it was, and its clipping, are zero within rounding in every record.

    Not this when: each batch is used for one step and the reference is not part of the loss, where zero is right;
    the entropy or the reward moves. Without variance of rewards nothing moves it (`reward_std_zero`). A run that
    may train no policy is not judged: scVI logs a divergence of its code that is always 0.
    """
    require_policy(run)
    logged = {name: run[name].finite for name in MOVES if name in run}
    if not logged or min(len(series) for series in logged.values()) < STILL_RECORDS:
        raise CannotTell(f"fewer than {STILL_RECORDS} records of {', '.join(logged) or 'any divergence'}")
    if set(logged) == {"clip_ratio"}:
        raise CannotTell("no divergence of the policy is logged: clipping is zero by itself where a batch is used once")
    most = max(float(np.abs(series.value).max()) for series in logged.values())
    if most > MAX_ROUNDING_DIVERGENCE:
        return None
    if (shown := _moves(run)) is not None:
        raise CannotTell(f"{shown}: the policy moves, whatever divergence is logged")
    first = min(float(series.step[0]) for series in logged.values())
    return Evidence(
        f"{' and '.join(logged)} are {f'at most {figure(most)}' if most else 'exactly 0'} in every record from "
        f"{run.place(first)} on",
        steps=(first,),
        values={"records": min(len(series) for series in logged.values())},
    )


def _moves(run: Run) -> str | None:
    """Return what shows that the policy moves, or None."""
    for name in SHOWN_BY:
        series = averaged(run, finite_of(run, name))
        if len(series) >= STILL_RECORDS and (change := trend(series)):
            return f"{name} moves by {change:+.2g}"
    return None


@question(
    outcome_of(kl_high, 0.005, "axolotl_stability", "remote_gpu_trainer", "schulman_nuts_talk"),
    outcome_of(kl_runs_away, 0.2, "trl_docs", of="kl_high"),
    outcome_of(clip_ratio_high, 0.008, "axolotl_stability", needs=("clip_ratio",)),
    outcome_of(policy_stands_still, 0.004, follows=("reward_std_zero",)),
    any_of=MOVED,
    not_for=NOT_POLICY,
)
def policy_movement(run: Run) -> Answers:
    """Look at KL, then at clipping, last at a policy that stands still; ratios that were off before explain them."""
    judges = (kl_high, clip_ratio_high, policy_stands_still)
    answers = first_seen(by_outcome(judges, run))
    off, far = answer_of(partial(importance_ratio_off, run)), answers.get("kl_high")
    if isinstance(off, Evidence) and off.present:
        rises_first = isinstance(far, Evidence) and far.present and far.steps[0] < off.steps[0]
        if not rises_first:
            return dict.fromkeys(answers, CannotTell("importance_ratio_off is seen, and it follows from that"))
    return with_attribute(answers, "kl_high", kl_runs_away)


# How much is left to chance?


MAX_COLLAPSED_ENTROPY_NATS = 0.01
"""Nats per token below which a policy has collapsed. Source: axolotl_stability; in GRPO 0.05 to 0.5 is healthy."""
SHARE_OF_START = 0.1
"""Share of its entropy at the start below which an agent has collapsed. Source: axolotl_stability."""
SHARE_OF_START_OF_TEXT = 0.02
"""The same of a language model. Chosen: by hand."""
MAX_ZERO_ENTROPY_NATS = 1e-4
"""Nats that count as none where the logarithm is taken. Chosen: far below `MAX_COLLAPSED_ENTROPY_NATS`."""
NOT_CONVERGING = 1.0
"""Nats per token above which a policy does not converge. Source: axolotl_stability, for GRPO."""
MIN_ENTROPY_GROWTH_RATIO = 2.0
"""Times its lowest level that the entropy of a language model grows to. Chosen: by hand."""
SHARE_OF_GROWTH = 0.25
"""Share of the entropy at the start by which that of an agent grows. Chosen: by hand."""
AS_AT_START = 0.98
"""Share of the entropy at the start that an agent's lowest level keeps if it has not moved. Chosen: by hand."""
MIN_UNCHANGED_RECORDS = 60
"""Records over which it does. Chosen: by hand."""
SAME_AT_END = 0.2
"""Share of the records at the end with the same reward. Chosen: by hand."""
MIN_RANDOM_ACTION_SHARE = 0.5
"""Share of random actions at which, if it stays, an agent does not act on what it learns. Chosen: by hand."""


def entropy_low(run: Run) -> Evidence | None:
    """The policy is nearly deterministic at the end of the log: its entropy is near zero.

    Not this when: entropy keeps clear of zero; single records touch it; the agent of a game has come to its best
    return meanwhile (a remark); actions are continuous, whose entropy has no floor (then it is unknown).
    """
    series = require_values(entropy(run), 1)
    value = series.value
    # An entropy of exactly 0 may not be computed.
    if len(value) < LEAST_FOR_LEVEL and bool(np.all((value > 0) & (value <= MAX_ZERO_ENTROPY_NATS))):
        return _none_left(run, series)
    require_values(series, LEAST_FOR_LEVEL)
    if float(value.min()) < -1e-3:
        raise CannotTell("entropy goes below zero, as that of continuous actions does: it has no floor to be near to")
    start, end = start_level(value), end_level(value)
    share = SHARE_OF_START_OF_TEXT if run.kind in TEXT_POLICIES else SHARE_OF_START
    limit = max(MAX_COLLAPSED_ENTROPY_NATS, share * start)
    if end >= limit:
        return None
    since = len(value) - true_at_end(value < limit)
    below = float(series.step[since if since < len(value) else 0])
    # Entropy decays exponentially: where it begins to collapse is seen in the logarithm.
    fall = (
        departure(np.log(np.maximum(value, MAX_ZERO_ENTROPY_NATS)), float(np.log(max(end, MAX_ZERO_ENTROPY_NATS))))
        if start >= limit
        else 0
    )
    onset, solved = min(float(series.step[fall]), below), is_solved(run)
    reward_clause = "; the reward has risen meanwhile and is at its best" if solved else _reward_by(run, below)
    return Evidence(
        f"entropy is below {figure(limit)} from {run.place(below)} on and ends at about {figure(end)}; "
        f"it began at about {figure(start)} and turns down at {run.place(onset)}{reward_clause}",
        steps=(onset, below),
        values={"start": start, "end": end, "limit": limit},
        present=not solved,
    )


def _none_left(run: Run, series: Series) -> Evidence:
    """Return what is seen of a policy that chooses one action only, in each of a few records."""
    records = "the one record there is" if len(series) == 1 else f"all {len(series)} records there are"
    return Evidence(
        f"entropy is {figure(series.value[-1])} at {run.place(series.step[-1])}: "
        f"nothing is left to chance in {records}",
        steps=(float(series.step[0]),),
        values={"start": float(series.value[0]), "end": float(series.value[-1]), "limit": MAX_ZERO_ENTROPY_NATS},
    )


def _reward_by(run: Run, step: float) -> str:
    """Return what had been earned when nothing was left to chance, and what is earned at the end."""
    rewards = rewards_of(run)
    if rewards is None or (then := rewards.at(step)) is None:
        return ""
    start, end = start_level(rewards.value), end_level(rewards.value)
    return (
        f"; the reward was about {figure(start)} at first, {figure(then)} by then and is about {figure(end)} at the end"
    )


def entropy_high(run: Run) -> Evidence | None:
    """The entropy of the policy is high and does not come down, or grows; or actions are taken at random for ever.

    Not this when: it falls; it rises a little from a low level; a classic agent has hardly begun; it stays high
    while the reward rises.
    """
    series = require_values(entropy(run), LEAST_FOR_COURSE)
    value = series.value
    cut, start, end = blocks(value, 20), start_level(value), end_level(value)
    lowest, grows = float(cut.level.min()), _grows(run, cut, start, end)
    if not grows and (not _entropy_stays(run, cut, start, end, len(value)) or seems_to_learn(run)):
        return None
    onset = float(series.step[departure(value, end) if grows else 0])
    return Evidence(
        f"entropy {'grows' if grows else 'stays high'} from {run.place(onset)} on: about {figure(start)} at the "
        f"start, lowest level {figure(lowest)}, about {figure(end)} at the end",
        steps=(onset,),
        values={"start": start, "lowest": lowest, "end": end, "grows": float(grows)},
    )


def entropy_grows(high: Evidence) -> Evidence | None:
    """The entropy of the policy grows far above its lowest level.

    Not this when: it is as high as it was at the start, which comes from the model or its temperature.
    """
    return high if high.values["grows"] else None


def _grows(run: Run, cut: Blocks, start: float, end: float) -> bool:
    lowest = float(cut.level.min())
    if run.kind in TEXT_POLICIES:
        return end > max(MIN_ENTROPY_GROWTH_RATIO * lowest, 0.5) and end - lowest > CLEAR_SIGMAS * cut.wobble
    return end - lowest > max(SHARE_OF_GROWTH * abs(start), 0.1) and end - start > CLEAR_SIGMAS * cut.wobble


def _entropy_stays(run: Run, cut: Blocks, start: float, end: float, count: int) -> bool:
    lowest = float(cut.level.min())
    if run.kind not in TEXT_POLICIES:
        return count >= MIN_UNCHANGED_RECORDS and lowest > AS_AT_START * start > 0
    falling = end < 0.8 * start and end - lowest < CLEAR_SIGMAS * cut.wobble
    return run.kind == "grpo" and lowest > NOT_CONVERGING and not falling


def _at_random(run: Run) -> Evidence | None:
    """Return what is seen of a share of random actions that never comes down."""
    if run.kind != "rl":
        raise CannotTell("it is not known whether this run trains an agent")
    share = require_values(run[next(name for name in EXPLORATION if name in run)].finite, LEAST_FOR_COURSE)
    highest = float(share.value.max())
    if highest < MIN_RANDOM_ACTION_SHARE or float(np.ptp(share.value)) > 0:
        return None
    return Evidence(
        f"{share.name} is {figure(highest)} in all {len(share)} records, up to {run.place(share.step[-1])}",
        steps=(float(share.step[0]),),
        values={"share": highest, "records": float(len(share)), "grows": 0.0},
    )


def exploration_ends_early(run: Run) -> Evidence | None:
    """Hardly any action is random from the first records on, and the reward does not rise, or all episodes come alike.

    Not this when: actions were random for a while; the reward rises, or rests where episodes got longer or shorter;
    only a log of a trained agent is known.
    """
    share = require_values(run[next(name for name in EXPLORATION if name in run)].finite, LEAST_FOR_LEVEL)
    alike = _episodes_alike(run) if float(share.value.max()) == 0 else ""
    if run.kind != "rl" or float(share.value.max()) > MAX_FINAL_RANDOM_SHARE or (seems_to_learn(run) and not alike):
        return None
    return Evidence(
        f"{share.name} is {figure(share.value[0])} at the first record, {run.place(share.step[0])}, and "
        f"{alike or 'the reward does not rise'}",
        steps=(float(share.step[0]),),
        values={"share": float(share.value[0]), "records": float(len(share)), "grows": 0.0},
    )


def _episodes_alike(run: Run) -> str:
    """Return the one reward of all late episodes, where each episode of the log is as long; "" where they differ."""
    rewards, length = rewards_of(run), finite_of(run, "episode_length")
    if rewards is None or not len(rewards) or not len(length) or np.ptp(length.value):
        return ""
    same = true_at_end(rewards.value == rewards.value[-1])
    if same < max(LEAST_FOR_LEVEL, SAME_AT_END * len(rewards)):
        return ""
    return (
        f"the last {same} rewards are {figure(rewards.value[-1])} each, of episodes that all take "
        f"{figure(length.value[0])} steps: the agent does the same again and again"
    )


@question(
    outcome_of(entropy_low, 0.006, "axolotl_stability", "rahtz_reproducing", follows=("eval_reward_falls",)),
    outcome_of(entropy_high, 0.012, "axolotl_stability", "rahtz_reproducing"),
    outcome_of(entropy_grows, 0.004, "axolotl_stability", of="entropy_high"),
    outcome_of(exploration_ends_early, 0.005),
    any_of=(*ENTROPIES, *EXPLORATION),
    not_for=NOT_POLICY,
)
def policy_entropy(run: Run) -> Answers:
    """Of a policy network its entropy, of an agent without one the share of random actions."""
    if not any(name in run for name in ENTROPIES):
        return first_seen({"entropy_high": partial(_at_random, run), **by_outcome((exploration_ends_early,), run)})
    answers = first_seen(by_outcome((entropy_low, entropy_high), run))
    return with_attribute(answers, "entropy_high", entropy_grows)


# Do completions grow, shrink, or end at the limit?


CLIPPED_RATIO = "completions/clipped_ratio"
LEAST_LENGTHS = 12
"""Records of lengths. Chosen: by hand."""
LEAST_SHARES = 3
"""Records of the share at the limit. Chosen: by hand."""
LEAST_SCORES = 4
"""Evaluations that have a score. Chosen: by hand."""
MIN_GROWTH = 2.0
"""Times the start that completions grow to. Chosen: by hand."""
NEAR_FACTOR = 1.5
"""The same where completions end near the limit. Chosen: by hand."""
NEAR_LIMIT = 0.7
"""Share of the limit near which completions end. Chosen: by hand."""
MIN_CUT_COMPLETION_SHARE = 0.5
"""Share of completions cut off that shows the limit is near. Chosen: by hand."""
MOST_WITH_SCORES = 4.0
"""Growth below this is a remark where scores of evaluation rise with it. Chosen: answers that take thought grow so."""
WHILE_LEARNING = 3.0
"""The same where the reward rises near the reference. Chosen: answers that take thought grow so."""
MIN_SHARE_AT_LONGEST = 0.25
"""Share of the records at the very longest mean, which is then the limit. Chosen: means of free lengths all differ."""
FEW_CUT = 0.2
"""The most completions cut off where there is room left. Chosen: by hand."""
MIN_LENGTH_TREND_CORRELATION = 0.8
"""Rank correlation of the growth with time. Chosen: by hand."""
MIN_KEPT_GROWTH_SHARE = 0.6
"""Share of the growth that is never lost. Chosen: by hand."""
MAX_SHRUNK_LENGTH_SHARE = 0.3
"""Of the length at the start. Chosen: a policy that learns a format may well drop half of its words."""
MOST_CUT = 0.8
"""Share of completions at the limit. Source: axolotl_stability."""
MIN_HIGH_BLOCK_SHARE = 0.25
"""Share of the log that has so many. Source: axolotl_stability."""
MIN_NEARLY_ALL_SHARE = 0.99
"""Share of completions that are nearly all. Chosen: under a low limit some are short enough."""
NEARLY_ALWAYS = 0.95
"""Share of the records that have so many, the first among them. Chosen: under a low limit some are short enough."""


def completion_length_grows(run: Run, share: Series) -> Evidence | None:
    """The mean length of completions rises steadily, to a multiple or up to the limit.

    Not this when: it wanders or falls back; it stays clear of the limit while all scores of evaluation rise;
    or the reward near the reference (remarks), as in tasks that take thought.
    """
    length = require_values(run["completion_length"].finite, LEAST_LENGTHS)
    cut, end = blocks(length.value, 12), end_level(length.value)
    start = min(start_level(length.value[: len(length) // 4]), float(cut.level[0]))  # it may grow at once
    limit, cut_off = run.setting("max_completion_length"), end_level(share.value) if len(share) else None
    near = end >= NEAR_LIMIT * limit if limit is not None else (cut_off or 0.0) >= MIN_CUT_COMPLETION_SHARE
    near = near or float(np.mean(length.value == length.value.max())) >= MIN_SHARE_AT_LONGEST
    grown = end >= (NEAR_FACTOR if near else MIN_GROWTH) * start and end - start > CLEAR_SIGMAS * cut.wobble
    stays = float(cut.level[len(cut.level) // 3 :].min()) >= start + MIN_KEPT_GROWTH_SHARE * (end - start)
    if start <= 0 or not grown or (monotone(cut.level) < MIN_LENGTH_TREND_CORRELATION and not stays):
        return None
    has_room = (limit is None or end < limit / 2) and cut_off is not None and cut_off < FEW_CUT
    serves = _serves(run, end / start) if has_room else ""
    limit_clause = f"; the limit is {figure(limit)}" if limit is not None else ""
    return _change(run, start, end, clause=limit_clause + serves, present=not serves)


def _serves(run: Run, factor: float) -> str:
    """Say what rises with the length, so that it may be thought that the task takes."""
    scores, rewards = held_out_scores(run, LEAST_SCORES), rewards_of(run)
    if factor < MOST_WITH_SCORES and scores and all(trend(score) > 0 for score in scores):
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
    was_cut = len(share) > 0 and start_level(share.value) > MIN_CUT_COMPLETION_SHARE
    if not 0 <= end < MAX_SHRUNK_LENGTH_SHARE * start or start - end < CLEAR_SIGMAS * wobble or was_cut:
        return None
    return _change(run, start, end, clause="", present=True)


def _change(run: Run, start: float, end: float, *, clause: str, present: bool) -> Evidence:
    length, how = run["completion_length"].finite, "grow" if end > start else "shrink"
    onset = float(length.step[departure(length.value, end)])
    return Evidence(
        f"completions {how} from {figure(start)} to {figure(end)} tokens, from {run.place(onset)} on"
        f"{clause}{_reward_beside(run)}",
        steps=(onset,),
        values={"start": start, "end": end, "factor": end / start},
        present=present,
    )


def completions_truncated(run: Run, share: Series) -> Evidence | None:
    """More than 80 % of the completions end at the length limit, for a quarter of the log or up to its end.

    Not this when: single records of many do; the share is high at the start and comes down for good; it was low at
    the start (`completions_reach_limit`).
    """
    return _at_limit(run, share)


def completions_never_end(truncated: Evidence, share: Series) -> Evidence | None:
    """No completion ends by itself, in nearly every record from the first on.

    Not this when: a few end earlier, as some do under a limit that is merely low; it comes about in training.
    """
    always = (
        len(share) >= LEAST_FOR_LEVEL
        and share.value[0] >= MIN_NEARLY_ALL_SHARE
        and (share.value >= MIN_NEARLY_ALL_SHARE).mean() >= NEARLY_ALWAYS
    )
    return truncated if always else None


def completions_reach_limit(run: Run, share: Series) -> Evidence | None:
    """Most completions ended by themselves at first, and more than 80 % run into the length limit later.

    Not this when: they did from the start (`completions_truncated`); their length has grown by half
    (`completion_length_grows`).
    """
    return _at_limit(run, share)


def _at_limit(run: Run, share: Series) -> Evidence | None:
    if len(share) < LEAST_SHARES and not (len(share) and bool((share.value >= MIN_NEARLY_ALL_SHARE).all())):
        raise CannotTell(f"{CLIPPED_RATIO} has fewer than {LEAST_SHARES} finite values")
    cut = blocks(share.value, 12)
    high = cut.level > MOST_CUT
    came_down = not high[-max(1, len(high) // 4) :].any()
    if came_down or (not high[-1] and high.mean() < MIN_HIGH_BLOCK_SHARE):
        return None
    first = int(cut.first[int(np.argmax(high))])
    onset = float(share.step[min(first, departure(share.value, 1.0)) if first else 0])
    since, start = median(share.value[share.step >= onset]), start_level(share.value)
    return Evidence(
        f"about {since:.0%} of the completions end at the limit from {run.place(onset)} on; "
        f"at the start about {start:.0%}{_reward_beside(run)}",
        steps=(onset,),
        values={"median": median(share.value), "start": start, "share_of_log": float(high.mean())},
    )


def _reward_beside(run: Run) -> str:
    """Return what the reward does meanwhile: the same lengths mean another thing where it rises with them."""
    rewards = rewards_of(run)
    if rewards is None or len(rewards) < LEAST_SHARES:
        return ""
    start, end = start_level(rewards.value), end_level(rewards.value)
    return f"; the reward goes from about {figure(start)} to about {figure(end)} meanwhile"


@question(
    outcome_of(completion_length_grows, 0.025, "axolotl_stability", needs=("completion_length",)),
    outcome_of(completion_length_shrinks, 0.01, needs=("completion_length",)),
    outcome_of(completions_truncated, 0.01, "axolotl_stability", needs=(CLIPPED_RATIO,)),
    outcome_of(
        completions_never_end, 0.05, "axolotl_faq", needs=(CLIPPED_RATIO,), as_chosen=True, of="completions_truncated"
    ),
    outcome_of(completions_reach_limit, 0.01, "axolotl_stability", needs=(CLIPPED_RATIO,)),
    any_of=("completion_length", CLIPPED_RATIO),
    not_for=NOT_POLICY,
)
def completions(run: Run) -> Answers:
    """What the lengths do goes before what the limit does to them, for they may have grown into it."""
    share = finite_of(run, CLIPPED_RATIO)
    at_first = start_level(share.value[:LEAST_SHARES]) if len(share) else 0.0
    at_limit = completions_truncated if at_first >= MIN_CUT_COMPLETION_SHARE else completions_reach_limit
    of_length = (completion_length_grows, completion_length_shrinks) if "completion_length" in run else ()
    answers = first_seen(by_outcome((*of_length, at_limit), run, share))
    return with_attribute(answers, "completions_truncated", completions_never_end, share)


# What do rewards do over the run, at evaluation and in a group, and do the values of a critic follow the returns?


# What does the reward do over the run?


MIN_STUCK_RECORD_SHARE = 0.15
"""Share of the records that are one number. Chosen: by hand."""
BELOW_BEST = 0.98
"""Share of the best before, below which that number lies. Chosen: solved is best."""
OF_AGENTS = 10
"""The same of an agent. Chosen: one record is the mean of many episodes."""
LEAST_STEPS = 20
"""Steps for which `rewards/*/mean` stays at 0. Source: axolotl_stability, where the checklist begins beyond 20."""
REWARD_COURSE_ZERO = 1e-6
"""Absolute reward up to which it is zero. Chosen: rounding."""
REWARD_COURSE_SHARE = 0.95
"""Share of records that are zero. Chosen: single ones may earn something by luck."""
MAX_EPISODE_DIFFERENCE = 0.01
"""Of the longest episode, and of the price per step: within it lengths, and prices, are one. Chosen: by hand."""
MIN_SHARE_OF_PRICES = 0.95
"""Share of the records in which all is the price of steps. Chosen: by hand."""
SHARE_OF_RISE = 0.5
"""Share of what was gained that is lost again. Chosen: on simulated curves."""
SHARE_OF_LEVEL = 0.3
"""The same of the best level of a language model that never rose. Chosen: on simulated curves."""


def _evidence(rewards: Series, summary: str, **values: float) -> Evidence:
    return Evidence(summary, steps=(float(rewards.step[0]),), values=values)


def reward_zero(run: Run, rewards: Series) -> Evidence | None:
    """The mean reward is zero from the first record on, or is never above it, and stays for more than 20 steps.

    Not this when: it leaves zero later; single records are zero; one component of several is zero (a strict
    format reward often is), which is a remark.
    """
    zero = np.abs(rewards.value) <= REWARD_COURSE_ZERO
    from_the_first = zero.mean() >= REWARD_COURSE_SHARE and zero[0]
    never_more = (
        float(rewards.value.max()) <= REWARD_COURSE_ZERO and float(zero[len(zero) // 2 :].mean()) >= REWARD_COURSE_SHARE
    )
    if not zero[-1] or not (from_the_first or never_more):
        return None
    steps, share = _steps(run, rewards, len(rewards)), float(zero.mean())
    if steps <= LEAST_STEPS or len(rewards) < MAX_FIRST_RECORDS:
        raise CannotTell(f"reward is 0 so far, but the log has only {figure(steps)} steps; {LEAST_STEPS} are needed")
    summary = f"reward is 0 in {share:.0%} of {len(rewards)} records, from {run.step_name} "
    between = f"{figure(rewards.step[0])} to {figure(rewards.step[-1])}"
    return _evidence(rewards, summary + between, share=share, records=len(rewards))


def reward_constant(run: Run, rewards: Series) -> Evidence | None:
    """The mean reward is exactly the same in every record, or from some step on and lower than before.

    Not this when: it is level but varies from batch to batch: then rewards do tell completions apart.
    """
    least, value = OF_AGENTS if run.kind == "rl" else LEAST_FOR_COURSE, float(rewards.value[-1])
    same = np.abs(rewards.value - value) <= 1e-9 * abs(value)
    if len(rewards) < least:
        return None
    if not same.all():
        return _stuck(run, rewards, len(rewards) - true_at_end(same))
    summary = f"reward is exactly {figure(value)} in all {len(rewards)} records"
    return _evidence(rewards, summary, value=value, records=len(rewards))


def _stuck(run: Run, rewards: Series, at: int) -> Evidence | None:
    """Say whether the reward is one number from some record on, below what it was: a solved task has its best."""
    value, before, count = float(rewards.value[-1]), rewards.value[:at], len(rewards) - at
    few = count < max(LEAST_FOR_COURSE, MIN_STUCK_RECORD_SHARE * len(rewards))
    if few or abs(value) <= REWARD_COURSE_ZERO or value >= BELOW_BEST * float(before.max()):
        return None
    since = float(rewards.step[at])
    return Evidence(
        f"reward is exactly {figure(value)} in all {count} records from {run.place(since)} on; before it "
        f"was up to {figure(before.max())}",
        steps=(since,),
        values={"value": value, "records": count},
    )


def reward_at_floor(run: Run, rewards: Series) -> Evidence | None:
    """The reward is the price of a step times the length of episodes that all run to one length, the longest.

    What would end them sooner is never reached. Not this when: some episodes end sooner; steps cost different
    amounts.
    """
    if run.kind != "rl" or len(rewards) < OF_AGENTS:
        return None
    _, length, reward = aligned(finite_of(run, "episode_length"), rewards)
    if not len(length) or (longest := float(length.max())) <= 1 or median(reward) >= 0:
        return None
    price = median(reward) / longest
    same = (length >= (1 - MAX_EPISODE_DIFFERENCE) * longest) & (
        np.abs(reward / longest - price) <= MAX_EPISODE_DIFFERENCE * abs(price)
    )
    share = float(same.mean())
    if share < MIN_SHARE_OF_PRICES:
        return None
    summary = (
        f"reward is {figure(price)} per step of episodes of {figure(longest)} steps, the longest on "
        f"record, in {share:.0%} of {len(rewards)} records"
    )
    return _evidence(rewards, summary, per_step=price, length=longest, share=share)


def _steps(run: Run, rewards: Series, count: int) -> float:
    """Return the steps that the first `count` records stand for; of epochs and environment steps, the records."""
    if run.step_name != "step" or run.kind == "rl":
        return count
    return float(rewards.step[count - 1]) if run.first_step <= LEAST_STEPS else count


def _leaves_zero(run: Run, rewards: Series) -> Evidence | None:
    length = int(np.argmax(np.abs(rewards.value) > REWARD_COURSE_ZERO))
    if length <= MAX_FIRST_RECORDS or _steps(run, rewards, length) <= LEAST_STEPS:
        return None
    first, last = float(rewards.step[length]), figure(rewards.step[length - 1])
    summary = f"reward is 0 up to {run.step_name} {last} and leaves it at {figure(first)}"
    return Evidence(summary, steps=(first,), present=False)


def _component(run: Run) -> Evidence | None:
    parts = components(run)
    dead = [
        part.name for part in parts if len(part) > LEAST_STEPS and not np.any(np.abs(part.value) > REWARD_COURSE_ZERO)
    ]
    if not dead:
        return None
    summary = f"{shorten(', '.join(dead), 120)} is 0 in every record ({len(dead)} of {len(parts)} reward components); "
    return Evidence(summary + "the total is not", present=False)


def reward_falls(run: Run, rewards: Series) -> Evidence | None:
    """The mean reward falls far below the best level it had, and is still there at the end of the log.

    Not this when: it dips and comes back; the returns of an agent only swing; an agent is worse than random at
    first and learns later.
    """
    value = rewards.value
    if lost_at_once(run, rewards):
        onset = float(rewards.step[int(np.argmax(value < MAX_LATER_REWARD_SHARE * value[0]))])
        return _fallen(run, float(value[0]), end_level(value), onset, "without having risen before")
    cut = blocks(value, 20)
    best, end = int(np.argmax(cut.level)), end_level(value)
    top = float(cut.level[best])
    rise = top - float(cut.level[: best + 1].min())
    rose = rise > 4 * cut.wobble
    if not rose and run.kind not in TEXT_POLICIES:
        return None
    needed = max(SHARE_OF_RISE * rise if rose else SHARE_OF_LEVEL * abs(top), CLEAR_SIGMAS * cut.wobble, 1e-9)
    tail = value[-max(3, len(value) // 10) :]
    if top - end < needed or quantile(tail, 0.8) > top - needed / 2:
        return None
    after = int(cut.first[best])
    onset = float(rewards.step[after + departure(value[after:], end)])
    before = f"after it had risen from {figure(top - rise)}" if rose else "without having risen before"
    return _fallen(run, top, end, onset, before)


def _fallen(run: Run, top: float, end: float, onset: float, before: str) -> Evidence:
    return Evidence(
        f"reward falls from about {figure(top)} to about {figure(end)} from {run.place(onset)} on, {before}, "
        "and stays down to the end of the log",
        steps=(onset,),
        values={"best": top, "end": end, "fall": top - end},
    )


def reward_sinks(run: Run, rewards: Series) -> Evidence | None:
    """The mean reward falls bit by bit from the start of the run on, and never was higher.

    So it does where training goes the wrong way. Not this when: the agent acts less and less at random, or may.
    """
    if not from_the_start(rewards) or not sinks(run, rewards):
        return None
    start, end = start_level(rewards.value), end_level(rewards.value)
    course = f"reward goes from about {figure(start)} at first to about {figure(end)}"
    return _evidence(rewards, f"{course}, and never was higher", start=start, end=end)


def _spread(run: Run) -> float:
    spread = finite_of(run, "reward_std").value
    return median(spread) if len(spread) else 0.0


def reward_flat(run: Run, rewards: Series) -> Evidence | None:
    """The mean reward stays at one level, or that of an agent in the later half, no higher than it began.

    What counts as a move is the noise between records, a quarter of `reward_std` or 5 % of the level.
    Not this when: it rises clearly, or moved and came back; an agent's log begins in mid-run; too few records; it is
    near the most that there is to earn, and least in the first record.
    """
    whole, agent = standing(rewards.value, _spread(run)), run.kind == "rl"
    if whole.stands and not agent and earns_all_at_once(rewards):
        raise CannotTell("the reward is near the most that there is to earn from the first record on")
    if whole.stands and agent and not from_the_start(rewards):
        raise CannotTell("the log begins in mid-run: the agent may have learnt before")
    if whole.stands:
        return _level(run, rewards, whole)
    if agent and from_the_start(rewards) and (evidence := _of_agent(run, rewards, whole)) is not None:
        return evidence
    if whole.hidden:
        raise CannotTell(f"reward is too noisy for {len(rewards)} records to tell a level one from one that moves")
    return None


RISES_AT_ONCE = 3.0
"""Times the range of all later records by which the first one lies below these. Chosen: noise has one of them apart."""


def _rises_at_once(value: NDArray[np.float64]) -> bool:
    """Say whether the first record lies far below all later ones: more than noise is learnt within it."""
    later = value[1:]
    return float(later.min()) - float(value[0]) > RISES_AT_ONCE * float(np.ptp(later))


def _of_agent(run: Run, rewards: Series, whole: Standing) -> Evidence | None:
    """Return what is seen of an agent that was never better than at first, is level only later, or swings.

    Averages over episodes that hold few of them at first, and an agent that explores less and less, move early.
    """
    value = rewards.value
    if _rises_at_once(value):
        return None
    level, start, end = blocks(value, 10).level, start_level(value), end_level(value)
    lowest, highest = float(level.min()), float(level.max())
    sunk = float(level[1:].max()) <= max(start, float(value[0])) + whole.move / 2 and drift(value)[0] <= 0
    if (sunk and float(level[-1]) <= start - whole.move / 2) or swings(value):
        swing = f"reward swings between {figure(lowest)} and {figure(highest)}: it " if swings(value) else "reward "
        ends = f"goes from about {figure(start)} at first to about {figure(end)}"
        return _evidence(rewards, swing + ends, start=start, end=end, lowest=lowest, highest=highest)
    late = rewards.since_record(len(rewards) // 2)
    if len(late) < LEAST_FOR_COURSE:
        return None
    rest = standing(late.value, _spread(run))
    return _level(run, late, rest) if rest.stands and rest.level <= start + rest.move else None


def _level(run: Run, rewards: Series, rest: Standing) -> Evidence:
    between = noise(rewards.value)
    summary = (
        f"reward stays around {figure(rest.level)} from {run.place(rewards.step[0])} to {figure(rewards.step[-1])}: "
        f"its trend over that stretch is {rest.change:+.2g}, the noise between records {between:.2g}"
    )
    return _evidence(rewards, summary, level=rest.level, change=rest.change, noise=between, range_of_blocks=rest.around)


@question(
    outcome_of(reward_flat, 0.012, "axolotl_stability", follows=("reward_constant",), instead=NO_REWARD),
    outcome_of(
        reward_constant, 0.002, "axolotl_stability", of="reward_flat", follows=("reward_zero", "reward_at_floor")
    ),
    outcome_of(reward_zero, 0.003, "axolotl_stability", of="reward_flat"),
    outcome_of(reward_at_floor, 0.002, of="reward_flat", needs=("episode_length",)),
    outcome_of(reward_falls, 0.006, "remote_gpu_trainer"),
    outcome_of(reward_sinks, 0.003),
    any_of=REWARDS,
    not_for=NOT_POLICY,
)
def reward_course(run: Run) -> Answers:
    """One value only; else falling or level."""
    rewards = reward(run)
    if not len(rewards):
        raise CannotTell("no finite reward")
    one_value = answers_of(by_outcome((reward_zero, reward_constant, reward_at_floor), run, rewards))
    flat = next((evidence for evidence in one_value.values() if isinstance(evidence, Evidence)), None)
    mean = averaged(run, rewards)
    if flat is not None:
        level = _level(run, mean, standing(mean.value, _spread(run))) if len(mean) >= LEAST_FOR_COURSE else flat
        return {"reward_flat": level, **one_value}
    answers = first_seen(
        by_outcome((reward_sinks, reward_falls, reward_flat), run, require_values(mean, LEAST_FOR_COURSE, "reward"))
    )
    remark = None if answers else _leaves_zero(run, rewards) or _component(run)
    return answers if remark is None else {"reward_flat": remark}


# Groups of completions of one prompt: whether their rewards differ, without which there is nothing to learn.


HIGH_SHARE = 0.8
"""Share of groups without spread that a record is without. Source: axolotl_stability, below 0.8 is healthy."""
GROUPS_ZERO = 1e-6
"""Standard deviation of rewards up to which there is none. Chosen: that of rewards up to 1, rounded."""
MAX_REWARD_ROUNDING_SHARE = 1e-6
"""Of the reward itself: the same for larger rewards. Chosen: what float32 leaves of the spread of equal rewards."""
NEARLY_ALWAYS_WITHOUT_VARIANCE = 0.9
"""Share of the records from some step on that lack variance, for its lack to begin there. Chosen: by hand."""
AT_CEILING = 0.99
"""Of the most that can be earned: a reward this near to it is the most. Chosen: by hand."""
WAS_BELOW = 0.9
"""Of the most that can be earned: a first reward below it was less. Chosen: by hand."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Variance of rewards within groups, record by record.

    Args:
        series: The metric that shows it.
        dead: In which of its records there is none, shape (n,).
        onset: The step from which nine in ten records lack it; the first step where none does.
        level: The reward there, None where it is not logged.
        solved: Whether that is the most that can be earned, 1 or a multiple of it, and it was earned less at first.
    """

    series: Series
    dead: NDArray[np.bool_]
    onset: float
    level: float | None
    solved: bool


def groups(run: Run) -> Groups | None:
    """Return the variance within groups, None where it is not logged."""
    rewards = rewards_of(run)
    if "frac_reward_zero_std" in run:
        series = run["frac_reward_zero_std"].finite
        dead = series.value >= HIGH_SHARE
    elif "reward_std" in run:
        series = run["reward_std"].finite
        size = 0.0 if rewards is None or not len(rewards) else median(np.abs(rewards.value))
        dead = series.value <= max(GROUPS_ZERO, MAX_REWARD_ROUNDING_SHARE * size)
    else:
        return None
    if not len(series):
        return None
    onset = float(series.step[_onset(dead)])
    since = np.empty(0) if rewards is None else rewards.value[rewards.step >= onset]
    level = median(since) if len(since) else None
    return Groups(series, dead, onset, level, level is not None and _is_solved(rewards, level))


def _onset(dead: NDArray[np.bool_]) -> int:
    share = np.cumsum(dead[::-1])[::-1] / np.arange(len(dead), 0, -1)
    return int(np.argmax((share >= min(NEARLY_ALWAYS_WITHOUT_VARIANCE, float(share.max()))) & dead))


def _is_solved(rewards: Series | None, level: float) -> bool:
    ceiling = float(np.ceil(level - (1 - AT_CEILING)))
    if rewards is None or ceiling < 1 or abs(level - ceiling) > (1 - AT_CEILING) * ceiling:
        return False
    return float(rewards.value.max()) <= ceiling * (2 - AT_CEILING) and float(rewards.value[0]) < WAS_BELOW * ceiling


# Do the rewards of a group of completions differ?


REWARD_SPREAD_LEAST_RECORDS = 10
"""Records that are needed to speak of the run. Chosen: a healthy run has a few without variance now and then."""
MIN_DEAD_RECORD_SHARE = 0.8
"""The share of records, in the later half of the log, that lack variance. Chosen: by hand."""


def no_variance_in_excerpt(run: Run, found: Groups) -> Evidence:
    """No reward variance in the few records there are.

    In every one of a few records, too few to speak of the run, nearly all groups have the same reward.
    Not this when: one of the records has some variance; there are ten records or more. A healthy run has such
    records now and then.
    """
    series = found.series
    return Evidence(
        f"{series.name} is {figure(series.value[-1])} at {run.place(series.step[-1])}: "
        f"groups without variance in {_every(len(series))}",
        steps=(float(series.step[0]),),
        values={"records": float(len(series))},
    )


def _every(records: int) -> str:
    return "the one record there is" if records == 1 else f"all {records} records there are"


def reward_std_zero(run: Run, found: Groups) -> Evidence | None:
    """No reward variance within groups.

    Nearly all groups of completions have the same reward, record after record.
    Not this when: it happens only sometimes, or in less than 80 % of the groups; the task is solved, and all get
    the most that there is (a remark).
    """
    later = found.dead[len(found.dead) // 2 :]
    if later.mean() < MIN_DEAD_RECORD_SHARE:
        return None
    typical = median(found.series.value[len(found.dead) // 2 :])
    reward_clause = "" if found.level is None else f"; the reward there is {figure(found.level)}"
    solved = ", the most that can be earned, and was less at first" if found.solved else ""
    return Evidence(
        f"{found.series.name} is {figure(typical)} in the later half of the log: groups without variance in "
        f"{later.mean():.0%} of its records, from {run.place(found.onset)} on{reward_clause}{solved}",
        steps=(found.onset,),
        values={"share_of_records": float(found.dead.mean()), "share_of_later_half": float(later.mean())},
        present=not found.solved,
    )


@question(
    outcome_of(reward_std_zero, 0.01, "axolotl_stability", follows=("eval_reward_falls",)),
    outcome_of(no_variance_in_excerpt, 0.04, "axolotl_stability"),
    any_of=("frac_reward_zero_std", "reward_std"),
    not_for=NOT_POLICY,
)
def reward_spread(run: Run) -> Answers:
    """The later half of a log; of an excerpt of a few records, all of them."""
    found = known(groups(run), "no finite value of the variance within groups")
    count = len(found.dead)
    if count < REWARD_SPREAD_LEAST_RECORDS:
        few = CannotTell(f"{found.series.name} has {counted(count, 'value')}; {REWARD_SPREAD_LEAST_RECORDS} are needed")
        excerpt = {"no_variance_in_excerpt": no_variance_in_excerpt(run, found)} if found.dead.all() else {}
        return {"reward_std_zero": few, **excerpt}
    many = CannotTell(
        f"{found.series.name} has {counted(count, 'value')}: of fewer than {REWARD_SPREAD_LEAST_RECORDS} only"
    )
    lasting = reward_std_zero(run, found)
    return {"no_variance_in_excerpt": many, **({} if lasting is None else {"reward_std_zero": lasting})}


# The score of evaluation falls while the reward of training rises.


MIN_SCORES = 6
"""Finite values that a score of evaluation must have. Chosen: two medians of three that share none."""
MIN_PAIRED_SCORES = 18
"""Finite values that a score which is logged with the reward must have. Chosen: two medians of three that share none;
of six blocks."""
MAX_RESTING_CHANGE_SHARE = 0.1
"""Share of the whole rise by which a reward that rests still moves over the later half. Chosen: a reward that is shaped
rises before the first success, and goes on to it."""
EVAL_REWARD_FALLS_SHARE = 0.25
"""Share of its best level that the score loses. Chosen: by hand."""
EVAL_REWARD_FALLS_SIGMAS = 4.0
"""Times the noise between evaluations that the score loses. Chosen: by hand."""
MIN_BEGUN_FALL_SHARE = 0.05
"""Share of the fall up to which it has not begun. Chosen: by hand."""


@symptom(any_of=REWARDS, sources=("remote_gpu_trainer",), not_for=NOT_POLICY, background=0.001)
def eval_reward_falls(run: Run) -> Evidence | None:
    """A score of evaluation falls well below its best for good, while the reward of training does not fall.

    What training pays for and what is wanted come apart. A score by people or a judge comes first. Where evaluation
    gives none, one that is logged with the reward; so does a success that never comes while the reward has risen to
    where it rests. Not this when: both fall (`reward_falls`); the score only scatters, or was best at one lucky
    evaluation.
    """
    scores = judged_scores(run, MIN_SCORES) or held_out_scores(run, MIN_SCORES) or scores_beside(run, MIN_PAIRED_SCORES)
    if not scores:
        raise CannotTell(
            f"no score of evaluation has {MIN_SCORES} finite values, and none with the reward has {MIN_PAIRED_SCORES}"
        )
    if (earned := _earned_without_success(run)) is not None:
        return earned
    levels = [(score, _levels(score)) for score in scores]
    lost = [(max(level) - level[-1], score, level) for score, level in levels if _falls(score, level)]
    if 2 * len(lost) <= len(scores):
        return None
    rewards = averaged(run, reward(run))
    paid = blocks(rewards.value, 12).level
    if len(paid) < 4 or end_level(paid) < median(paid[: len(paid) // 2]):
        return None
    fall, series, level = max(lost, key=lambda candidate: candidate[0])
    top, end, best = max(level), level[-1], int(np.argmax(level))
    best += int(np.argmax(series.value[best : best + 3]))
    begun = best + int(np.argmax(series.value[best:] <= top - MIN_BEGUN_FALL_SHARE * fall))
    onset = float(series.step[max(begun - 1, best)])
    since = rewards.where(rewards.step >= onset).value
    then = start_level(since) if len(since) else float(paid[-1])
    return Evidence(
        f"{series.name} falls from about {figure(top)} to about {figure(end)} from {run.place(onset)} on, "
        f"while the reward goes from {figure(then)} to {figure(paid[-1])}",
        steps=(onset,),
        values={"best": top, "end": end, "reward_at_onset": then, "reward_at_end": float(paid[-1])},
    )


def _earned_without_success(run: Run) -> Evidence | None:
    """Say that the reward has risen to where it rests, and the rate of success is zero to the end.

    Not this where random actions end at once: the agent then settles on what it met by then.
    """
    never, rise = never_succeeds(run, MIN_PAIRED_SCORES), kept_rise(run)
    if not never or rise is None or chance_ends(run) is not None:
        return None
    later = blocks(averaged(run, reward(run)).value, 12).level[6:]
    if len(later) < 4 or float(np.ptp(later)) > MAX_RESTING_CHANGE_SHARE * (rise[1] - rise[0]):
        return None
    return Evidence(
        f"{never[0].name} is {figure(never[0].value.max())} at most in {len(never[0])} records and "
        f"{figure(never[0].value[-1])} at the end, while the reward goes from about {figure(rise[0])} to "
        f"about {figure(rise[1])} and rests there",
        steps=(float(never[0].step[0]),),
        values={"best": float(never[0].value.max()), "reward_at_start": rise[0], "reward_at_end": rise[1]},
    )


def _levels(score: Series) -> list[float]:
    """Return the medians of three values each; the first is the first value where all that follows goes on falling."""
    level = [median(score.value[at : at + 3]) for at in range(len(score) - 2)]
    goes_on = level[0] - level[-1] > noise(score.value)
    return [max(level[0], float(score.value[0])), *level[1:]] if goes_on else level


def _falls(score: Series, level: list[float]) -> bool:
    top = max(level)
    return top > 0 and top - level[-1] >= max(
        EVAL_REWARD_FALLS_SHARE * top, EVAL_REWARD_FALLS_SIGMAS * noise(score.value)
    )


# What a critic is worth: its loss, its values and the variance that it explains, against the returns on record.


MEASURE_CRITIC_NOTHING = 0.05
"""How near to zero an explained variance is none. Chosen: by hand."""
MIN_UNEXPLAINED_RECORD_SHARE = 0.75
"""Share of the records in which it is none, for a critic that explains nothing. Chosen: by hand."""
MAX_SQUARED_ERROR_RATIO = 1e6
"""Times the squared reward: no squared error of a value reaches it. Chosen: with a discount of 0.99 values err by 200
rewards, and by some times that before they settle."""
LEAST_IMPOSSIBLE = 1000.0
"""The least of that where the longest episode bounds returns. Chosen: most episodes may bring nothing, few a lot."""
_SHORT = regex(r"(?:.*/)?(?:(?:mean|avg|average|max)_?q|q_?(?:mean|avg|average|max))", re.IGNORECASE, needs="q")
"""Names of the values of actions that are too short to be understood elsewhere."""


def critic_loss(run: Run) -> Series | None:
    """Return the loss of the critic; that of Q-learning, which has nothing but a critic, is called the loss."""
    if "value_loss" in run:
        return run["value_loss"]
    # The loss of a policy takes both signs.
    alone = run.kind == "rl" and "loss" in run and "policy_loss" not in run
    return run["loss"] if alone and not bool(np.any(run["loss"].finite.value < 0)) else None


def return_scale(run: Run) -> float | None:
    """Return the largest reward in size, at least 1.

    Values between minus and plus that size are wrong by at most twice of it.
    """
    size = np.abs(finite_of(run, "reward").value)
    return max(1.0, float(size.max())) if len(size) else None


def impossible(run: Run) -> float:
    """Return the multiple of the squared reward that no error of a value can reach."""
    length = finite_of(run, "episode_length").value
    if not len(length):
        return MAX_SQUARED_ERROR_RATIO
    return float(np.clip((2 * length.max()) ** 2, LEAST_IMPOSSIBLE, MAX_SQUARED_ERROR_RATIO))


@dataclass(frozen=True, slots=True)
class Explained:
    """The share of the variance of returns that a critic explains: 1 at best, 0 of a constant, below 0 of worse.

    Args:
        best: The highest level that it kept, over a tenth of the log.
        late: Its median over the later half.
        end: Its level at the end of the log.
        below: The share of the records of the later half in which it is below zero.
        since: The step from which it stays below zero, block by block; the last step where it does not.
        nothing: Whether it is about zero in most of all records.
        records: How many there are.
    """

    best: float
    late: float
    end: float
    below: float
    since: float
    nothing: bool
    records: int


def explained(run: Run) -> Explained | None:
    """Return what a critic explains, None where that is not logged."""
    logged = finite_of(run, "explained_variance")
    if not len(logged):
        return None
    value, cut = logged.value, blocks(logged.value, 10)
    late = value[len(value) // 2 :]
    since = min(len(cut.first) - true_at_end(cut.level < 0), len(cut.first) - 1)
    return Explained(
        best=float(cut.level.max()),
        late=median(late),
        end=float(cut.level[-1]),
        below=float(np.mean(late < 0)),
        since=float(logged.step[int(cut.first[since])]),
        nothing=bool(np.mean(np.abs(value) < MEASURE_CRITIC_NOTHING) >= MIN_UNEXPLAINED_RECORD_SHARE),
        records=len(value),
    )


def action_values(run: Run) -> Series | None:
    """Return the size of the values that a critic gives to actions, the largest of several; None if none is logged."""
    known = run.with_role(Quantity.VALUE, phase="train", parts=True)
    logged = [series.finite for series in (*known, *(run[name] for name in run.series if _SHORT.fullmatch(name)))]
    sizes = [Series(series.name, series.step, np.abs(series.value)) for series in logged if len(series)]
    return max(sizes, key=lambda series: median(series.value[len(series) // 2 :]), default=None)


def _discounted(run: Run) -> float | None:
    """Return the sum of discounted rewards of an episode without end, from the reward of a step and the discount.

    A critic that counts on beyond a time limit comes to r / (1 - gamma).
    """
    gamma = run.setting("gamma")
    if gamma is None or not 0 < gamma < 1:
        return None
    steps, returns = finite_of(run, "episode_length").value, run["reward"].finite.value
    if not len(steps) or median(steps) <= 0:
        return None
    return float(np.abs(returns).max()) / median(steps) / (1 - gamma)


# Does the critic run away from what is earned?


MIN_VALUE_LOSS_RATIO = 30.0
"""Times the lowest level before it that a value loss ends at. Chosen: on simulated curves."""
GROWTH_ALONE = 1000.0
"""The same where no reward tells the scale. Chosen: on simulated curves."""
MIN_UNPREDICTED_LOSS_RATIO = 100.0
"""Times the loss on the largest returns of one that they do not explain. Chosen: errors are ten times as large."""
MAX_UNEXPLAINED_ERROR_RATIO = 100.0
"""Times the squared reward, where the critic explains nothing of returns. Fitted: 23 healthy runs stay below 0.2."""
OUT_OF_REACH = 1000.0
"""Root of the loss there. Chosen: a fresh network gives values of about one and learns no thousand times that."""
LEAST_RECORDS = 8
"""Records of a loss or of values. Chosen: by hand."""
MAX_VALUE_RETURN_RATIO = 10.0
"""Times the largest value that returns explain. Chosen: scaled rewards and a bonus make some times of it."""
TIMES_GROWING = 3.0
"""The same where values still grow. Chosen: by hand."""
STILL_GROWS = 1.5
"""Growth over the later half from which values still grow. Chosen: by hand."""
VALUE_GROWTH_AT_ONCE = 100.0
"""The same of few records. Chosen: by hand."""
WORSE_THAN_CONSTANT = -0.1
"""Explained variance below which a critic is worse than a constant. Chosen: no noise of a few batches is so low."""
HAD_EXPLAINED = 0.4
"""Explained variance that was reached before it was lost. Chosen: no noise of a few batches is so high."""
MAX_LOST_EXPLAINED_VARIANCE = 0.02
"""Explained variance below which what was reached is lost. Chosen: by hand."""
MIN_BELOW_ZERO_SHARE = 0.8
"""Share of the records below zero. Chosen: no noise of a few batches lasts so long."""
RUN_CRITIC_NOTHING = 0.01
"""An explained variance that is none. Chosen: rounding and chance."""
MIN_NOTHING_EXPLAINED_SHARE = 0.95
"""Share of all records that have it, from the first on. Chosen: rounding and chance."""


def value_loss_high(run: Run) -> Evidence | None:
    """The loss of the value function grows by orders of magnitude, past what returns or a network can explain.

    Not this when: it is large because returns are large, and they are explained; it grows with the returns as the
    agent learns; it jumps within what returns can explain and comes back; the policy's loss is lost with it.
    """
    logged, scale, worth = critic_loss(run), return_scale(run), explained(run)
    if logged is None:
        raise CannotTell("not logged: value_loss")
    if np.isinf(logged.value).any():
        at = float(logged.step[int(np.argmax(np.isinf(logged.value)))])
        until = run["policy_loss"].between(-np.inf, at).value if "policy_loss" in run else np.empty(0)
        if not np.isfinite(until).all():
            raise CannotTell(
                f"the loss of the policy is not finite at {run.place(at)} either: both may share the fault"
            )
        return Evidence(f"value_loss is infinite at {run.place(at)}", steps=(at,), values={"end": np.inf})
    loss = Series(logged.name, logged.finite.step, np.abs(logged.finite.value))
    nothing, long = worth is not None and worth.nothing, len(loss) >= LEAST_RECORDS
    if nothing and long and (level := median(loss.value)) > OUT_OF_REACH**2:
        predicate = f"is {figure(level)} (median of {len(loss)} records), and explained_variance stays at zero,"
        return _high(run, loss, predicate, 0, level=level)
    few = too_few("value_loss", len(loss), LEAST_RECORDS)
    # Returns explain a loss only as far as the critic explains returns, by the variance or by the loss that it had.
    unexplained = worth is not None and worth.end < WORSE_THAN_CONSTANT and worth.best >= HAD_EXPLAINED
    grown = (
        _grown(run, loss, scale, unexplained=unexplained or (worth is None and _predicted_before(run, loss)))
        if long
        else None
    )
    if not long and (scale is None or not len(loss)):
        raise few
    if grown is not None or scale is None:
        return grown
    # What no returns could explain while it lasted, though it came back.
    smooth, limit = (
        median_of_three(loss.value),
        (MAX_UNEXPLAINED_ERROR_RATIO if nothing else impossible(run)) * scale * scale,
    )
    if float(smooth.max()) <= limit:
        if not long:
            raise few
        return None
    back = " and comes back" if float(smooth[-1]) <= limit else ""
    predicate = f"reaches {figure(smooth.max())}{back}, with a largest reward of {figure(scale)} on record,"
    return _high(run, loss, predicate, int(np.argmax(smooth > limit)), peak=float(smooth.max()), reward_scale=scale)


def _predicted_before(run: Run, loss: Series) -> bool:
    """Say whether the loss was far below its end while returns were at their largest: they do not explain it."""
    rewards = finite_of(run, "reward")
    if len(rewards) < LEAST_RECORDS or len(loss) < LEAST_RECORDS:
        return False
    size = blocks(np.abs(rewards.value), 20)
    largest = int(np.argmax(size.level))
    since = float(rewards.step[size.first[largest]])
    until = float(rewards.step[size.first[largest + 1]]) if largest + 1 < len(size.first) else np.inf
    then = loss.value[(loss.step >= since) & (loss.step < until)]
    return len(then) > 0 and end_level(loss.value) > MIN_UNPREDICTED_LOSS_RATIO * median(then)


def _high(run: Run, loss: Series, predicate: str, at: int, **values: float) -> Evidence:
    onset = float(loss.step[at])
    return Evidence(
        f"value_loss {predicate} from {run.place(onset)} on",
        steps=(onset,),
        values={"end": end_level(loss.value), **values},
    )


def _grown(run: Run, loss: Series, scale: float | None, *, unexplained: bool) -> Evidence | None:
    # A critic that starts at zero output on zero rewards has no loss to speak of: compare with the typical one.
    lowest, end = float(blocks(loss.value, 20).level.min()), end_level(loss.value)
    before = max(lowest, 1e-3 * median(loss.value), 1e-8)
    by_returns = 0.0 if scale is None or unexplained else 4 * scale * scale
    if end <= (GROWTH_ALONE * before if scale is None else max(MIN_VALUE_LOSS_RATIO * before, by_returns)):
        return None
    at = departure(np.log(np.maximum(loss.value, before)), float(np.log(end)))
    scale_clause = f" with a largest reward of {figure(scale)} on record," if scale is not None else ""
    growth = f"grows from about {figure(before)} to about {figure(end)}, {ratio(end / before)} times,{scale_clause}"
    return _high(run, loss, growth, at, lowest=before, factor=end / before)


def _rests(returns: NDArray[np.float64]) -> bool:
    """Say whether returns no longer rise in the later half, whatever they did before."""
    later = returns[len(returns) // 2 :]
    third, last = np.array_split(later, 2)
    return len(later) >= LEAST_RECORDS and median(last) - median(third) <= noise(later)


def q_values_beyond_returns(run: Run) -> Evidence | None:
    """Values of actions ten times what was ever earned, or three times and still growing while the return does not.

    Not this when: they come back in the later half; rewards are scaled for the critic, to some times as much.
    """
    if run.kind in TEXT_POLICIES:
        raise CannotTell("a language model's rewards are normalised before its critic sees them")
    values, scale = action_values(run), return_scale(run)
    if values is None or scale is None:
        raise CannotTell("values of actions and returns are not both logged")
    level = blocks(values.value, 8).level
    middle = float(level[len(level) // 2])
    growth = float(level[-1]) / middle if middle > 0 else 1.0
    few = min(len(values), len(run["reward"].finite)) < LEAST_RECORDS
    grows = growth >= STILL_GROWS and (not seems_to_learn(run) or _rests(run["reward"].finite.value))
    expected, reached = max(scale, _discounted(run) or 0.0), median(values.value[len(values) // 2 :])
    limit = (VALUE_GROWTH_AT_ONCE if few else TIMES_GROWING if grows else MAX_VALUE_RETURN_RATIO) * expected
    if reached <= limit:
        if few:
            raise CannotTell(f"values of actions and returns are not logged {LEAST_RECORDS} times each")
        return None
    at = float(values.step[int(np.argmax(values.value > limit))])
    largest = float(np.abs(run["reward"].finite.value).max())
    return Evidence(
        f"{values.name} is {figure(reached)} in size (median of the later half, in which it grows "
        f"{ratio(growth)} times), beyond {figure(limit)} from {run.place(at)} on; "
        f"the largest return on record is {figure(largest)}",
        steps=(at,),
        values={"values": reached, "largest_return": largest, "expected": expected, "growth": growth},
    )


def _explained(run: Run) -> Explained:
    worth = explained(run)
    if worth is None or worth.records < LEAST_FOR_COURSE:
        raise CannotTell(f"explained_variance is not logged, or less than {LEAST_FOR_COURSE} times")
    value = finite_of(run, "reward").value
    later = value[len(value) // 2 :]
    level = abs(median(later)) if len(later) else 0.0
    if len(later) and noise(later) <= 1e-3 * level and float(np.ptp(later)) <= 0.01 * level:
        raise CannotTell("the returns hardly vary: they leave no variance to explain")
    return worth


def explained_variance_low(run: Run) -> Evidence | None:
    """The critic predicts returns worse than a constant does, and goes on so, or ends so after it had been better.

    Not this when: it is low at first; it is about zero because returns are mostly chance; returns do not vary;
    the reward rises all the same (a remark).
    """
    worth = _explained(run)
    highest = max(worth.late, worth.end)
    stays = highest < WORSE_THAN_CONSTANT and worth.below >= MIN_BELOW_ZERO_SHARE
    if not stays and not (worth.best >= HAD_EXPLAINED and highest < MAX_LOST_EXPLAINED_VARIANCE):
        return None
    rewards = rewards_of(run)
    falls = rewards is not None and trend(rewards.where(rewards.step >= worth.since)) < 0
    learns = seems_to_learn(run) and not falls
    return Evidence(
        f"explained_variance has a median of {figure(worth.late)} over the later half and ends at "
        f"{figure(worth.end)}, below zero from {run.place(worth.since)} on; its highest level is "
        f"{figure(worth.best)}{'; the reward rises all the same' if learns else ''}",
        steps=(worth.since,),
        values={"late": worth.late, "end": worth.end, "best": worth.best, "share_below_zero": worth.below},
        present=not learns,
    )


def critic_explains_nothing(run: Run) -> Evidence | None:
    """The critic explains none of the variance of returns, from the first record to the last.

    Not this when: the reward rises all the same; returns do not vary; it explains something now and then.
    """
    _explained(run)
    worth = run["explained_variance"].finite
    share = float(np.mean(np.abs(worth.value) <= RUN_CRITIC_NOTHING))
    if share < MIN_NOTHING_EXPLAINED_SHARE:
        return None
    rewards = rewards_of(run)
    learns = rewards is not None and trend(averaged(run, rewards)) > 0
    return Evidence(
        f"explained_variance is within {figure(RUN_CRITIC_NOTHING)} of zero in {share:.0%} of {len(worth)} records"
        f"{'; the reward rises all the same' if learns else ''}",
        steps=(float(worth.step[0]),),
        values={"share": share, "records": len(worth)},
        present=not learns,
    )


@question(
    outcome_of(value_loss_high, 0.004, "jones_rl_debugging"),
    outcome_of(q_values_beyond_returns, 0.004),
    outcome_of(explained_variance_low, 0.01, needs=("explained_variance",)),
    outcome_of(critic_explains_nothing, 0.005, needs=("explained_variance",)),
    any_of=(Quantity.VALUE_LOSS, Quantity.LOSS, Quantity.VALUE, Quantity.EXPLAINED_VARIANCE, "*mean_q", "*avg_q"),
    not_for=NOT_POLICY,
)
def critic(run: Run) -> Answers:
    """The first of the outcomes that is seen; why each one before it could not be judged."""
    looks = (value_loss_high, q_values_beyond_returns, explained_variance_low, critic_explains_nothing)
    return first_seen(by_outcome(looks, run))
