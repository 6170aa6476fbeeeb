"""How far does the policy go from where it was?"""

from __future__ import annotations

from inspect import cleandoc

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.divergence import LEAST_RECORDS, Divergence, cost, divergences
from mldebug_mcp.measure.rewards import TEXT_POLICIES, averaged, trend
from mldebug_mcp.measure.statistics import departure, highest_level, median, noise
from mldebug_mcp.symptoms.policy import NOT_POLICY, require_policy
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.text import counted, figure

NO_KL = 0.05
"""KL below this is not part of a rise: healthy runs reach it."""
JUMP = 0.3
JUMP_FACTOR = 5.0
"""A single update this large, and this far above the median, is one too large even if the next ones are small."""
TIMES_AT_ONCE = 10.0
"""Times the limit, for which fewer records are enough, were there only one. Chosen by hand."""
MOVES = ("approx_kl", "kl", "clip_ratio")
"""What is above zero as soon as a policy has taken one step away from the one that sampled, or from its reference."""
STILL_RECORDS = 10
STILL = 1e-6
"""A divergence that rounding in float32 leaves of two policies that are one; that of a usual update is a thousand times
as large. Chosen by hand."""
SHOWN_BY = ("entropy", "reward")
"""What changes for good only where the policy does."""
BELOW_ZERO = -0.05
BELOW_ZERO_SUMMED = -0.5
"""Mean over the later half, per token and per completion: an estimate of what cannot be below zero, this far below it.
Chosen by hand."""
ERRORS = 5.0
"""... and this many times the error of the mean."""


@question(
    Outcome(
        "kl_high",
        cleandoc("""KL to the reference far too large.

        The KL divergence of the policy from its reference, or from the policy before the update, is far too large.
        Not this when: single records jump and come back (one rare token does that to an estimate of KL to the
        reference); KL is summed over the tokens of a completion, for which the limit is higher."""),
        background=0.005,
        sources=("axolotl_stability", "remote_gpu_trainer", "schulman_nuts_talk"),
    ),
    Outcome(
        "kl_negative",
        cleandoc("""The estimate of KL to the reference stays below zero.

        A divergence cannot be negative, and its estimate from samples of the policy is not, on average. Below zero
        for good it says that the samples come from other weights, or were cut (top-k, temperature), against the
        policy that is scored.
        Not this when: single records are negative, or a policy that has hardly moved is near zero. The limits were
        chosen by hand."""),
        background=0.004,
        needs=("kl",),
    ),
    Outcome(
        "policy_stands_still",
        cleandoc("""The policy does not move at all.

        The divergence of the policy from where it was, and its clipping, are zero to within rounding in every
        record.
        Not this when: each batch is used for one step and the reference is not part of the loss, where zero is
        right: then only a divergence from the reference would show movement, or the entropy or the reward does.
        Without variance of rewards there is nothing to move it (`reward_std_zero`). The number of records was chosen
        by hand."""),
        background=0.004,
        follows=("reward_std_zero",),
    ),
    any_of=("kl", "approx_kl", "loss_kl", "clip_ratio"),
    not_for=NOT_POLICY,
)
def policy_divergence(run: Run) -> Answers:
    """Too far, below zero, or not at all."""
    answers: dict[str, Evidence | CannotTell] = {}
    logged = divergences(run)
    for name, look in (("kl_high", _high), ("kl_negative", _negative)):
        try:
            require_policy(run)
            seen = look(run, logged)
        except CannotTell as why:
            answers[name] = why
            continue
        if seen is not None:
            answers[name] = seen
            if seen.present:
                return answers
    try:
        still = _still(run)
    except CannotTell as why:
        return {**answers, "policy_stands_still": why}
    return answers if still is None else {**answers, "policy_stands_still": still}


def _high(run: Run, logged: list[Divergence]) -> Evidence | None:
    if not logged:
        raise CannotTell("not logged: kl or approx_kl")
    judged = [evidence for one in logged if (evidence := _judge(run, one)) is not None]
    return max(judged, key=lambda evidence: evidence.present, default=None)


def _judge(run: Run, one: Divergence) -> Evidence | None:
    series = one.series
    few = len(series) < LEAST_RECORDS
    if few and median(series.value) <= TIMES_AT_ONCE * one.limit:
        raise CannotTell(f"{series.name} has {counted(len(series), 'finite value')} here; {LEAST_RECORDS} are needed")
    kept = median(series.value) if few else highest_level(series.value).value
    if kept > one.limit:
        return _sustained(run, one, kept)
    peak = int(np.argmax(series.value))
    top, typical = float(series.value[peak]), median(series.value)
    at = float(series.step[peak])
    values = {"peak": top, "median": typical, "limit": one.limit}
    if one.of_update and top > JUMP and top > JUMP_FACTOR * typical:
        return Evidence(
            f"{series.name} ({one.what}) is {figure(top)} at {run.step_name} {figure(at)}; its median is "
            f"{figure(typical)}",
            steps=(at,),
            values=values,
        )
    if top > one.limit:
        return Evidence(
            f"{series.name} ({one.what}) reaches {figure(top)} at {run.step_name} {figure(at)} and comes back; its "
            f"median is {figure(typical)}",
            steps=(at,),
            values=values,
            present=False,
        )
    return None


def _sustained(run: Run, one: Divergence, level: float) -> Evidence:
    series = one.series
    first = float(series.step[_first_stay(series.value, one.limit)])
    # KL runs away exponentially: its departure is seen in the logarithm.
    onset = float(series.step[departure(np.log(np.maximum(series.value, NO_KL)), np.log(level))])
    paid = None if one.of_update else cost(run, float(series.value[-1]))
    beside = "" if paid is None else f", which costs {figure(paid)} of reward at the coefficient that is set"
    return Evidence(
        f"{series.name} ({one.what}) exceeds {figure(one.limit)} from {run.step_name} {figure(first)} on and "
        f"reaches a level of {figure(level)}; it begins to rise at {run.step_name} {figure(min(onset, first))}, from "
        f"{figure(float(series.value[0]))} at first, and ends at {figure(float(series.value[-1]))}{beside}",
        steps=(min(onset, first), first),
        values={
            "level": level,
            "first": float(series.value[0]),
            "end": float(series.value[-1]),
            "limit": one.limit,
            **({} if paid is None else {"cost": paid}),
        },
    )


def _first_stay(values: Floats, limit: float) -> int:
    """Return the first index at which two values in a row exceed the limit."""
    above = values > limit
    return int(np.argmax(above & np.append(above[1:], True)))


def _negative(run: Run, logged: list[Divergence]) -> Evidence | None:
    to_reference = next((one for one in logged if not one.of_update), None)
    if run.kind not in TEXT_POLICIES or to_reference is None:
        raise CannotTell("no divergence from a reference is logged")
    series = to_reference.series
    later = series.value[len(series) // 2 :]
    if len(later) < LEAST_RECORDS:
        raise CannotTell(f"{series.name} has {counted(len(series), 'finite value')}; {2 * LEAST_RECORDS} are needed")
    mean, error = float(later.mean()), noise(later) / np.sqrt(len(later))
    least = BELOW_ZERO_SUMMED if to_reference.summed else BELOW_ZERO
    if mean > min(least, -ERRORS * error) or median(later) > least:
        return None
    first = float(series.step[int(np.argmax(series.value < least))])
    return Evidence(
        f"{series.name} ({to_reference.what}) has a mean of {figure(mean)} ± {figure(error)} over the later half; it "
        f"is below {figure(least)} first at {run.step_name} {figure(first)}",
        steps=(first,),
        values={"mean": mean, "error": float(error), "end": float(series.value[-1])},
    )


def _still(run: Run) -> Evidence | None:
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
        f"{run.step_name} {figure(first)} on",
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
