"""Does the critic run away from what is earned?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.critic import (
    ActionValues,
    Explained,
    action_values,
    critic_loss,
    explained,
    impossible,
    return_scale,
)
from mldebug_mcp.measure.policy import NOT_POLICY
from mldebug_mcp.measure.rewards import TEXT_POLICIES, averaged, rewards_of, seems_to_learn, trend
from mldebug_mcp.measure.statistics import blocks, departure, end_level, median, median_of_three, noise
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.symptoms.telling import first_seen
from mldebug_mcp.text import counted, figure

GROWTH, GROWTH_ALONE = 30.0, 1000.0
"""Times the lowest level before it; the second where no reward tells the scale. Chosen: on simulated curves."""
UNEXPLAINED, OUT_OF_REACH = 100.0, 1000.0
"""Times the squared reward, or root of the loss, where the critic explains nothing of returns. Fitted: 23 sound runs
stay below 0.2; a fresh network gives values of about one and does not learn a thousand times that in a run."""
LEAST_RECORDS, LEAST_EXPLAINED = 8, 20
"""Records of a loss or of values, and of the variance that is explained. Chosen: by hand."""
TIMES, TIMES_GROWING, STILL_GROWS, TIMES_AT_ONCE = 10.0, 3.0, 1.5, 100.0
"""Times the largest value that returns explain; where values still grow by the third over the later half; from few
records. Chosen: scaled rewards and a bonus for entropy make some times of it."""
WORSE_THAN_CONSTANT, HAD_EXPLAINED, LASTING = -0.1, 0.4, 0.8
"""A level kept below that of a constant, or lost from the second; the share of records below zero. Chosen: no noise of
a few batches."""
NOTHING, ALWAYS = 0.01, 0.95
"""An explained variance that is none, in this share of all records from the first on. Chosen: rounding and chance."""


@question(
    Outcome(
        "value_loss_high",
        """The loss of the value function grows by orders of magnitude, past what returns or a network can explain.

        Not this when: it is large because returns are large, and they are explained; it grows with the returns as the
        agent learns; it jumps within what returns can explain and comes back.""",
        background=0.004,
        sources=("jones_rl_debugging",),
    ),
    Outcome(
        "q_values_beyond_returns",
        """Values of actions ten times what was ever earned, or three times and still growing while the return does not.

        Not this when: they come back in the later half; rewards are scaled for the critic, to some times as much.""",
        background=0.004,
    ),
    Outcome(
        "explained_variance_low",
        """The critic predicts returns worse than a constant does, and goes on so.

        The explained variance stays below zero over the later half of the log, or ends there after it had been high.
        Not this when: it is low at first; it is about zero because returns are mostly chance; returns do not vary;
        the reward rises all the same (a remark).""",
        background=0.01,
        needs=("explained_variance",),
    ),
    Outcome(
        "critic_explains_nothing",
        """The critic explains none of the variance of returns, from the first record to the last.

        Not this when: the reward rises all the same; returns do not vary; it explains something now and then.""",
        background=0.005,
        needs=("explained_variance",),
    ),
    any_of=(Quantity.VALUE_LOSS, Quantity.LOSS, Quantity.VALUE, Quantity.EXPLAINED_VARIANCE, "*mean_q", "*avg_q"),
    not_for=NOT_POLICY,
)
def critic(run: Run) -> Answers:
    """The first of the outcomes that is seen; why each one before it could not be judged."""
    return first_seen({outcome: partial(look, run) for outcome, look in _LOOKS.items()})


def _loss(run: Run) -> Evidence | None:
    loss = critic_loss(run)
    if loss is None:
        raise CannotTell("not logged: value_loss")
    if np.isinf(loss.value).any():
        at = float(loss.step[int(np.argmax(np.isinf(loss.value)))])
        return Evidence(f"value_loss is infinite at {run.step_name} {figure(at)}", steps=(at,), values={"end": np.inf})
    loss, scale, worth = loss.finite, return_scale(run), explained(run)
    nothing = worth is not None and worth.nothing
    if nothing and len(loss) >= LEAST_RECORDS and median(np.abs(loss.value)) > OUT_OF_REACH**2:
        return _out_of_reach(run, loss)
    beyond = _beyond_returns(run, loss, scale, nothing=nothing) if len(loss) and scale is not None else None
    if len(loss) >= LEAST_RECORDS:
        return _grown(run, loss, scale) or beyond
    if beyond is None:
        raise CannotTell(f"value_loss has {counted(len(loss), 'finite value')} here; {LEAST_RECORDS} are needed")
    return beyond


def _out_of_reach(run: Run, loss: Series) -> Evidence:
    level, first = median(np.abs(loss.value)), float(loss.step[0])
    return Evidence(
        f"value_loss is {figure(level)} (median of {len(loss)} records) from {run.step_name} {figure(first)} on, and "
        "explained_variance stays at zero",
        steps=(first,),
        values={"level": level, "end": end_level(np.abs(loss.value))},
    )


def _grown(run: Run, loss: Series, scale: float | None) -> Evidence | None:
    size = np.abs(loss.value)
    cut = blocks(size, 20)
    before, end = float(np.minimum.accumulate(cut.level)[-1]), end_level(size)
    # A critic that starts at zero output on zero rewards has no loss to speak of: compare with the typical one.
    before = max(before, 1e-3 * median(size), 1e-8)
    limit = GROWTH_ALONE * before if scale is None else max(GROWTH * before, (2 * scale) * (2 * scale))
    if end <= limit:
        return None
    onset = float(loss.step[departure(np.log(np.maximum(size, before)), float(np.log(end)))])
    beside = f"; the largest reward on record is {figure(scale)}" if scale is not None else ""
    return Evidence(
        f"value_loss grows from {figure(before)} to {figure(end)}, {figure(end / before)} times, from "
        f"{run.step_name} {figure(onset)} on{beside}",
        steps=(onset,),
        values={"lowest": before, "end": end, "factor": end / before, **({"reward_scale": scale} if scale else {})},
    )


def _beyond_returns(run: Run, loss: Series, scale: float, *, nothing: bool) -> Evidence | None:
    """Return what is seen of a loss that no returns could explain while it lasted, though it came back."""
    size, limit = median_of_three(np.abs(loss.value)), (UNEXPLAINED if nothing else impossible(run)) * scale * scale
    if float(size.max()) <= limit:
        return None
    back = " and comes back" if float(size[-1]) <= limit else ""
    onset = float(loss.step[int(np.argmax(size > limit))])
    beside = "; explained_variance stays at zero" if nothing else ""
    return Evidence(
        f"value_loss reaches {figure(float(size.max()))} from {run.step_name} {figure(onset)} on{back}; the "
        f"largest reward on record is {figure(scale)}{beside}",
        steps=(onset,),
        values={"peak": float(size.max()), "end": end_level(np.abs(loss.value)), "reward_scale": scale},
    )


def _values(run: Run) -> Evidence | None:
    if run.kind in TEXT_POLICIES:
        raise CannotTell("a language model's rewards are normalised before its critic sees them")
    seen = action_values(run)
    if seen is None:
        raise CannotTell("values of actions and returns are not both logged")
    few = min(len(seen.series), len(run["reward"].finite)) < LEAST_RECORDS
    times = _limit(seen, few=few)
    if seen.reached <= times * seen.expected:
        if few:
            raise CannotTell(f"values of actions and returns are not logged {LEAST_RECORDS} times each")
        return None
    at = float(seen.series.step[int(np.argmax(seen.series.value > times * seen.expected))])
    grows = f", and grows {figure(seen.growth)} times over the later half" if times == TIMES_GROWING else ""
    largest = float(np.abs(run["reward"].finite.value).max())
    return Evidence(
        f"{seen.series.name} is {figure(seen.reached)} in size (median of the later half){grows}, beyond "
        f"{figure(times * seen.expected)} from {run.step_name} {figure(at)} on; the largest return on record is "
        f"{figure(largest)}",
        steps=(at,),
        values={
            "values": seen.reached,
            "largest_return": largest,
            "expected": seen.expected,
            "growth": seen.growth,
        },
    )


def _limit(seen: ActionValues, *, few: bool) -> float:
    if few:
        return TIMES_AT_ONCE
    return TIMES_GROWING if seen.growth >= STILL_GROWS and not seen.earns_more else TIMES


def _explained(run: Run) -> Evidence | None:
    worth = explained(run)
    if worth is None:
        raise CannotTell("not logged: explained_variance")
    if worth.records < LEAST_EXPLAINED:
        raise CannotTell(f"explained_variance has {counted(worth.records, 'value')}; {LEAST_EXPLAINED} are needed")
    if not _returns_vary(run):
        raise CannotTell("the returns hardly vary: there is no variance to explain")
    if not (_stays_worse(worth) or _is_lost(worth)):
        return None
    learns = seems_to_learn(run)
    beside = "; the reward rises all the same" if learns else ""
    return Evidence(
        f"explained_variance has a median of {figure(worth.late)} over the later half and ends at "
        f"{figure(worth.end)}, below zero from {run.step_name} {figure(worth.since)} on; its highest level is "
        f"{figure(worth.best)}{beside}",
        steps=(worth.since,),
        values={"late": worth.late, "end": worth.end, "best": worth.best, "share_below_zero": worth.below},
        present=not learns,
    )


def _stays_worse(worth: Explained) -> bool:
    return max(worth.late, worth.end) < WORSE_THAN_CONSTANT and worth.below >= LASTING


def _is_lost(worth: Explained) -> bool:
    return worth.best >= HAD_EXPLAINED and max(worth.late, worth.end) < 0


def _returns_vary(run: Run) -> bool:
    if "reward" not in run:
        return True
    value = run["reward"].finite.value
    later = value[len(value) // 2 :]
    return (
        not len(later) or noise(later) > 1e-3 * abs(median(later)) or float(np.ptp(later)) > 0.01 * abs(median(later))
    )


def _explains_nothing(run: Run) -> Evidence | None:
    worth = run["explained_variance"].finite if "explained_variance" in run else None
    if worth is None or len(worth) < LEAST_EXPLAINED or not _returns_vary(run):
        raise CannotTell(f"fewer than {LEAST_EXPLAINED} values of explained_variance, or returns that hardly vary")
    share = float(np.mean(np.abs(worth.value) <= NOTHING))
    if share < ALWAYS:
        return None
    rewards = rewards_of(run)
    learns = rewards is not None and trend(averaged(run, rewards)) > 0
    return Evidence(
        f"explained_variance is within {figure(NOTHING)} of zero in {share:.0%} of {len(worth)} records"
        f"{'; the reward rises all the same' if learns else ''}",
        steps=(float(worth.step[0]),),
        values={"share": share, "records": len(worth)},
        present=not learns,
    )


_LOOKS: dict[str, Callable[[Run], Evidence | None]] = {
    "value_loss_high": _loss,
    "q_values_beyond_returns": _values,
    "explained_variance_low": _explained,
    "critic_explains_nothing": _explains_nothing,
}
