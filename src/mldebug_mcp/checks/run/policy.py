"""Does a policy keep its entropy, its distance from the reference, and the length of its completions?"""

from __future__ import annotations

from functools import partial

import numpy as np

from mldebug_mcp.checks.check import (
    Answers,
    CannotTell,
    Evidence,
    answer_of,
    by_outcome,
    first_seen,
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
    blocks,
    departure,
    end_level,
    finite_of,
    highest_level,
    monotone,
    start_level,
    true_at_end,
)
from mldebug_mcp.checks.policies import (
    ENTROPIES,
    EXPLORATION,
    MAX_FINAL_RANDOM_SHARE,
    MIN_DIVERGENCE_RECORDS,
    NOT_POLICY,
    PER_UPDATE,
    TEXT_POLICIES,
    Divergence,
    averaged,
    cost,
    divergences,
    entropy,
    held_out_scores,
    is_solved,
    require_policy,
    rewards_of,
    seems_to_learn,
    stays_near,
    trend,
)
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.text import figure
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
