"""How far does the policy go from where it was, and do the weights that sampled agree with those that are trained?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.divergence import LEAST_RECORDS, Divergence, cost, divergences
from mldebug_mcp.measure.policy import NOT_POLICY, require_policy
from mldebug_mcp.measure.rewards import averaged, trend
from mldebug_mcp.measure.statistics import blocks, departure, highest_level, median
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import by_outcome, first_seen, with_attribute
from mldebug_mcp.text import counted, figure

NO_KL = 0.05
"""KL below this is not part of a rise. Chosen: healthy runs reach it."""
JUMP, JUMP_FACTOR = 0.3, 5.0
"""KL of a single update that is too large, and times the median. Chosen: beyond the scatter of sound updates."""
TIMES_AT_ONCE = 10.0
"""Times the limit, for which one record is enough. Chosen: by hand."""
RUNS_AWAY = 10.0
"""Times the limit. Chosen: estimates of a few rare tokens do not keep so much."""
MOVES = ("approx_kl", "kl", "clip_ratio")
"""What is above zero as soon as a policy has taken one step away from the one that sampled, or from its reference."""
STILL_RECORDS, STILL = 10, 1e-6
"""Records, and what rounding in float32 leaves of the divergence of two equal policies. Chosen: a usual update is a
thousand times as large."""
SHOWN_BY = ("entropy", "reward")
"""What changes for good only where the policy does."""
RATIOS = {
    "sampling/importance_sampling_ratio/min": (0.01, np.inf),
    "sampling/sampling_logp_difference/mean": (-1.0, 1.0),
    "policy_ratio": (0.5, 2.0),
    "sampling/importance_sampling_ratio/mean": (0.5, 2.0),
}
"""Ranges of ratios between the weights that sampled and those that are trained. Source: axolotl_stability."""
LEAST_RATIOS = 3
"""Records of a ratio. Chosen: as many as make a level."""
CLIPPED, CLIPPED_RL, LASTING = 0.3, 0.5, 0.2
"""Share of the ratios that is clipped; small environments learn with 0.3 to 0.4. Source: axolotl_stability. In so many
of the records at least. Chosen: a policy that finds its task moves fast for a while."""


def importance_ratio_off(run: Run) -> Evidence | None:
    """The weights that sampled and those that are trained give clearly different probabilities to the same tokens.

    Not this when: single records are off; the largest ratio alone is large (a maximum over many tokens).
    """
    logged = [one for one in RATIOS if one in run and len(run[one].finite) >= LEAST_RATIOS]
    if not logged:
        raise CannotTell(f"no ratio of sampling to training has {LEAST_RATIOS} finite values")
    return next((seen for name in logged if (seen := _off(run, run[name].finite)) is not None), None)


def _off(run: Run, series: Series) -> Evidence | None:
    low, high = RATIOS[series.name]
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
    ratio = run["clip_ratio"].finite if "clip_ratio" in run else None
    if ratio is None or len(ratio) < LEAST_RECORDS:
        raise CannotTell(f"clip_ratio has fewer than {LEAST_RECORDS} finite values")
    limit = CLIPPED_RL if run.kind == "rl" else CLIPPED
    kept = highest_level(ratio.value)
    if kept.value <= limit or float((ratio.value > limit).mean()) < LASTING:
        return None
    onset, typical = float(ratio.step[kept.at]), median(ratio.value)
    return Evidence(
        f"clip_ratio keeps a level of {figure(kept.value)} from {run.place(onset)} on; its median over "
        f"the log is {figure(typical)}",
        steps=(onset,),
        values={"level": kept.value, "median": typical, "limit": limit},
    )


def kl_high(run: Run) -> Evidence | None:
    """The KL divergence of the policy from its reference, or from before the update, is far too large.

    Not this when: single records jump and come back, as one rare token makes an estimate do; KL is summed over the
    tokens of a completion, for which the limit is higher.
    """
    require_policy(run)
    logged = divergences(run)
    if not logged:
        raise CannotTell("not logged: kl or approx_kl")
    judged = [evidence for one in logged if (evidence := _judge(run, one)) is not None]
    return max(judged, key=lambda evidence: evidence.present, default=None)


def _judge(run: Run, one: Divergence) -> Evidence | None:
    series, value = one.series, one.series.value
    few, typical, peak = len(series) < LEAST_RECORDS, median(value), int(np.argmax(value))
    if few and typical <= TIMES_AT_ONCE * one.limit:
        raise CannotTell(f"{series.name} has {counted(len(series), 'finite value')} here; {LEAST_RECORDS} are needed")
    kept = typical if few else highest_level(value).value
    if kept > one.limit:
        return _sustained(run, one, kept)
    top, at = float(value[peak]), float(series.step[peak])
    of_one = one.of_update and top > JUMP and top > JUMP_FACTOR * typical
    if not of_one and top <= one.limit:
        return None
    return Evidence(
        f"{series.name} ({one.what}) reaches {figure(top)} at {run.place(at)} and comes back; its "
        f"median is {figure(typical)}",
        steps=(at,),
        values={"peak": top, "median": typical, "limit": one.limit},
        present=of_one,
    )


def kl_runs_away(far: Evidence) -> Evidence | None:
    """The KL divergence comes to ten times what is far too large already.

    Not this when: it is a few times above; it jumps and comes back.
    """
    level = far.values.get("level") or 0.0
    return far if level > RUNS_AWAY * (far.values["limit"] or level) else None


def _sustained(run: Run, one: Divergence, level: float) -> Evidence:
    series, above = one.series, one.series.value > one.limit
    # The first of two values in a row that exceed the limit.
    first = float(series.step[int(np.argmax(above & np.append(above[1:], True)))])
    # KL runs away exponentially: its departure is seen in the logarithm.
    onset = min(first, float(series.step[departure(np.log(np.maximum(series.value, NO_KL)), np.log(level))]))
    paid, end = None if one.of_update else cost(run, float(series.value[-1])), float(series.value[-1])
    beside = "" if paid is None else f", which costs {figure(paid)} of reward at the coefficient that is set"
    return Evidence(
        f"{series.name} ({one.what}) exceeds {figure(one.limit)} from {run.place(first)} on and "
        f"reaches a level of {figure(level)}; it begins to rise at {run.place(onset)}, from "
        f"{figure(series.value[0])} at first, and ends at {figure(end)}{beside}",
        steps=(onset, first),
        values={"level": level, "end": end, "limit": one.limit, **({} if paid is None else {"cost": paid})},
    )


def policy_stands_still(run: Run) -> Evidence | None:
    """The divergence of the policy from where it was, and its clipping, are zero within rounding in every record.

    Not this when: each batch is used for one step and the reference is not part of the loss, where zero is right;
    the entropy or the reward moves. Without variance of rewards nothing moves it (`reward_std_zero`).
    """
    logged = {name: run[name].finite for name in MOVES if name in run}
    if not logged or min(len(series) for series in logged.values()) < STILL_RECORDS:
        raise CannotTell(f"fewer than {STILL_RECORDS} records of {', '.join(logged) or 'any divergence'}")
    if set(logged) == {"clip_ratio"}:
        raise CannotTell("no divergence of the policy is logged: clipping is zero by itself where a batch is used once")
    most = max(float(np.abs(series.value).max()) for series in logged.values())
    if most > STILL:
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
        series: Series | None = averaged(run, run[name].finite) if name in run else None
        if series is not None and len(series) >= STILL_RECORDS and (change := trend(series)):
            return f"{name} moves by {change:+.2g}"
    return None


@question(
    outcome_of(importance_ratio_off, 0.006, "axolotl_stability", "trl_docs"),
    outcome_of(kl_high, 0.005, "axolotl_stability", "remote_gpu_trainer", "schulman_nuts_talk"),
    outcome_of(kl_runs_away, 0.2, "trl_docs", of="kl_high"),
    outcome_of(clip_ratio_high, 0.008, "axolotl_stability", needs=("clip_ratio",)),
    outcome_of(policy_stands_still, 0.004, follows=("reward_std_zero",)),
    any_of=("kl", "approx_kl", "loss_kl", "clip_ratio", *RATIOS),
    not_for=NOT_POLICY,
)
def policy_movement(run: Run) -> Answers:
    """Ratios first, which tell what KL and clipping follow from; a policy that stands still last."""
    judges = (importance_ratio_off, kl_high, clip_ratio_high, policy_stands_still)
    return with_attribute(first_seen(by_outcome(judges, run)), "kl_high", kl_runs_away)
