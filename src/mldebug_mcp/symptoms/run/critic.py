"""Does the critic run away from what is earned?"""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc

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
from mldebug_mcp.measure.rewards import TEXT_POLICIES, seems_to_learn
from mldebug_mcp.measure.statistics import blocks, departure, end_level, median, median_of_three, noise
from mldebug_mcp.symptoms.policy import NOT_POLICY
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.text import counted, figure

GROWTH = 30.0
"""The loss rises to this multiple of the lowest level before it; chosen on simulated curves."""
UNEXPLAINED = 100.0
"""... or passes this multiple of the squared reward, where beside it the critic explains nothing of the returns, as one
far from them does. In 23 sound runs that log it the multiple is at most 0.2, also where little is explained; where
targets run away, above 6,000."""
GROWTH_ALONE = 1000.0
"""... or to this one where no reward tells the scale of returns."""
LEAST_RECORDS = 8
TIMES = 10.0
"""Times the largest value that returns explain. Scaled rewards and a bonus for entropy make some times of it. Chosen by
hand."""
TIMES_GROWING = 3.0
STILL_GROWS = 1.5
"""... or this many, where over the later half they still grow by this factor while the return does not. By hand."""
TIMES_AT_ONCE = 100.0
"""... or this many, for which few records are enough. By hand."""
WORSE_THAN_CONSTANT = -0.1
HAD_EXPLAINED = 0.4
"""Explained variance: a critic that predicts a constant has 0. A level kept this far below it, or lost from this high
to below it, is no noise of a few batches. Chosen by hand."""
LASTING = 0.8
"""The share of the records of the later half in which it is below zero."""
LEAST_EXPLAINED = 20


@question(
    Outcome(
        "value_loss_high",
        cleandoc("""Value loss explodes.

        The loss of the value function or critic grows by orders of magnitude, past what returns can explain.
        Not this when: it is large because returns are large; it grows with the returns as the agent learns; it
        wobbles and never reaches zero; it jumps within what returns can explain and comes back."""),
        background=0.004,
        sources=("jones_rl_debugging",),
    ),
    Outcome(
        "q_values_beyond_returns",
        cleandoc("""Values of actions far above anything that was ever earned.

        A value is a discounted return, so that it is at most about as large as the largest one, or as the reward of
        a step over one minus the discount. The values are ten times that, or three times and still growing while the
        return does not.
        Not this when: they come back in the later half; rewards are scaled for the critic, which makes some times as
        much of them."""),
        background=0.004,
    ),
    Outcome(
        "explained_variance_low",
        cleandoc("""The critic predicts returns worse than a constant does, and goes on so.

        The explained variance stays below zero over the later half of the log, or ends there after it had been high.
        Not this when: it is low at first; it is about zero because returns are mostly chance; returns do not vary;
        the reward rises all the same (a remark)."""),
        background=0.01,
        needs=("explained_variance",),
    ),
    any_of=(Quantity.VALUE_LOSS, Quantity.LOSS, Quantity.VALUE, Quantity.EXPLAINED_VARIANCE, "*mean_q", "*avg_q"),
    not_for=NOT_POLICY,
)
def critic(run: Run) -> Answers:
    """The first of the outcomes that is seen; why each one before it could not be judged."""
    answers: dict[str, Evidence | CannotTell] = {}
    for name, look in _LOOKS.items():
        try:
            seen = look(run)
        except CannotTell as why:
            answers[name] = why
            continue
        if seen is not None:
            answers[name] = seen
            if seen.present:
                break
    return answers


def _loss(run: Run) -> Evidence | None:
    loss = critic_loss(run)
    if loss is None:
        raise CannotTell("not logged: value_loss")
    if np.isinf(loss.value).any():
        at = float(loss.step[int(np.argmax(np.isinf(loss.value)))])
        return Evidence(f"value_loss is infinite at {run.step_name} {figure(at)}", steps=(at,), values={"end": np.inf})
    loss, scale, worth = loss.finite, return_scale(run), explained(run)
    nothing = worth is not None and worth.nothing
    beyond = _beyond_returns(run, loss, scale, nothing=nothing) if len(loss) and scale is not None else None
    if len(loss) >= LEAST_RECORDS:
        return _grown(run, loss, scale) or beyond
    if beyond is None:
        raise CannotTell(f"value_loss has {counted(len(loss), 'finite value')} here; {LEAST_RECORDS} are needed")
    return beyond


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


_LOOKS: dict[str, Callable[[Run], Evidence | None]] = {
    "value_loss_high": _loss,
    "q_values_beyond_returns": _values,
    "explained_variance_low": _explained,
}
