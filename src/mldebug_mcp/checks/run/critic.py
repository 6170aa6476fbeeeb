"""Do the values of a critic follow the returns?"""

from __future__ import annotations

import re

import numpy as np

from mldebug_mcp.checks.asking import by_outcome, first_seen, outcome_of
from mldebug_mcp.checks.check import Answers, CannotTell, Evidence, question
from mldebug_mcp.checks.curve import blocks, departure, end_level, median_of_three, noise
from mldebug_mcp.checks.policies import NOT_POLICY, TEXT_POLICIES, averaged, rewards_of, seems_to_learn, trend
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.core.text import counted, figure, ratio
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.run import Run, Series

# What a critic is worth: its loss, its values and the variance that it explains, against the returns on record.


MEASURE_CRITIC_NOTHING = 0.05
"""How near to zero an explained variance is none. Chosen: by hand."""
MOSTLY = 0.75
"""Share of the records in which it is none, for a critic that explains nothing. Chosen: by hand."""
IMPOSSIBLE = 1e6
"""Times the squared reward: no squared error of a value reaches it. Chosen: with a discount of 0.99 values err by 200
rewards, and by some times that before they settle."""
LEAST_IMPOSSIBLE = 1000.0
"""The least of that where the longest episode bounds the returns, as many rewards as it has steps. Chosen: most
episodes may bring nothing, and few a lot."""

_SHORT = regex(r"(?:.*/)?(?:(?:mean|avg|average|max)_?q|q_?(?:mean|avg|average|max))", re.IGNORECASE)
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
    if "reward" not in run or not len(run["reward"].finite):
        return None
    return max(1.0, float(np.abs(run["reward"].finite.value).max()))


def impossible(run: Run) -> float:
    """Return the multiple of the squared reward that no error of a value can reach."""
    length = run["episode_length"].finite.value if "episode_length" in run else np.empty(0)
    if not len(length):
        return IMPOSSIBLE
    return float(np.clip((2 * length.max()) ** 2, LEAST_IMPOSSIBLE, IMPOSSIBLE))


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
    if "explained_variance" not in run or not len(logged := run["explained_variance"].finite):
        return None
    value, cut = logged.value, blocks(logged.value, 10)
    late = value[len(value) // 2 :]
    above = np.flatnonzero(cut.level >= 0)
    since = 0 if not len(above) else min(int(above[-1]) + 1, len(cut.first) - 1)
    return Explained(
        best=float(cut.level.max()),
        late=median(late),
        end=float(cut.level[-1]),
        below=float(np.mean(late < 0)),
        since=float(logged.step[int(cut.first[since])]),
        nothing=bool(np.mean(np.abs(value) < MEASURE_CRITIC_NOTHING) >= MOSTLY),
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
    if gamma is None or not 0 < gamma < 1 or "episode_length" not in run:
        return None
    steps, returns = run["episode_length"].finite.value, run["reward"].finite.value
    if not len(steps) or median(steps) <= 0:
        return None
    return float(np.abs(returns).max()) / median(steps) / (1 - gamma)


# Does the critic run away from what is earned?


GROWTH = 30.0
"""Times the lowest level before it that a value loss ends at. Chosen: on simulated curves."""
GROWTH_ALONE = 1000.0
"""The same where no reward tells the scale. Chosen: on simulated curves."""
OUTGROWN = 100.0
"""Times the loss on the largest returns at which a loss ends that they do not explain. Chosen: errors are ten times as
large."""
UNEXPLAINED = 100.0
"""Times the squared reward, where the critic explains nothing of returns. Fitted: 23 healthy runs stay below 0.2."""
OUT_OF_REACH = 1000.0
"""Root of the loss there. Chosen: a fresh network gives values of about one and does not learn a thousand times that in
a run."""
LEAST_RECORDS = 8
"""Records of a loss or of values. Chosen: by hand."""
LEAST_EXPLAINED = 20
"""Records of the variance that is explained. Chosen: by hand."""
TIMES = 10.0
"""Times the largest value that returns explain. Chosen: scaled rewards and a bonus for entropy make some times of
it."""
TIMES_GROWING = 3.0
"""The same where values still grow. Chosen: by hand."""
STILL_GROWS = 1.5
"""Growth over the later half from which values still grow. Chosen: by hand."""
TIMES_AT_ONCE = 100.0
"""The same of few records. Chosen: by hand."""
WORSE_THAN_CONSTANT = -0.1
"""Explained variance below which a critic is worse than a constant. Chosen: no noise of a few batches is so low."""
HAD_EXPLAINED = 0.4
"""Explained variance that was reached before it was lost. Chosen: no noise of a few batches is so high."""
LOST = 0.02
"""Explained variance below which what was reached is lost. Chosen: by hand."""
LASTING = 0.8
"""Share of the records below zero. Chosen: no noise of a few batches lasts so long."""
RUN_CRITIC_NOTHING = 0.01
"""An explained variance that is none. Chosen: rounding and chance."""
ALWAYS = 0.95
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
    few = CannotTell(f"value_loss has {counted(len(loss), 'finite value')} here; {LEAST_RECORDS} are needed")
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
    smooth, limit = median_of_three(loss.value), (UNEXPLAINED if nothing else impossible(run)) * scale * scale
    if float(smooth.max()) <= limit:
        if not long:
            raise few
        return None
    back = " and comes back" if float(smooth[-1]) <= limit else ""
    predicate = f"reaches {figure(smooth.max())}{back}, with a largest reward of {figure(scale)} on record,"
    return _high(run, loss, predicate, int(np.argmax(smooth > limit)), peak=float(smooth.max()), reward_scale=scale)


def _predicted_before(run: Run, loss: Series) -> bool:
    """Say whether the loss was far below its end while returns were at their largest: they do not explain it."""
    rewards = run["reward"].finite if "reward" in run else None
    if rewards is None or len(rewards) < LEAST_RECORDS or len(loss) < LEAST_RECORDS:
        return False
    size = blocks(np.abs(rewards.value), 20)
    largest = int(np.argmax(size.level))
    since = float(rewards.step[size.first[largest]])
    until = float(rewards.step[size.first[largest + 1]]) if largest + 1 < len(size.first) else np.inf
    then = loss.value[(loss.step >= since) & (loss.step < until)]
    return len(then) > 0 and end_level(loss.value) > OUTGROWN * median(then)


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
    if end <= (GROWTH_ALONE * before if scale is None else max(GROWTH * before, by_returns)):
        return None
    at = departure(np.log(np.maximum(loss.value, before)), float(np.log(end)))
    beside = f" with a largest reward of {figure(scale)} on record," if scale is not None else ""
    growth = f"grows from about {figure(before)} to about {figure(end)}, {ratio(end / before)} times,{beside}"
    return _high(run, loss, growth, at, lowest=before, factor=end / before)


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
    grows = growth >= STILL_GROWS and not seems_to_learn(run)
    expected, reached = max(scale, _discounted(run) or 0.0), median(values.value[len(values) // 2 :])
    limit = (TIMES_AT_ONCE if few else TIMES_GROWING if grows else TIMES) * expected
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
    if worth is None or worth.records < LEAST_EXPLAINED:
        raise CannotTell(f"explained_variance is not logged, or less than {LEAST_EXPLAINED} times")
    value = run["reward"].finite.value if "reward" in run else np.empty(0)
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
    stays = highest < WORSE_THAN_CONSTANT and worth.below >= LASTING
    if not stays and not (worth.best >= HAD_EXPLAINED and highest < LOST):
        return None
    learns = seems_to_learn(run) and not _falls_since(run, worth.since)
    return Evidence(
        f"explained_variance has a median of {figure(worth.late)} over the later half and ends at "
        f"{figure(worth.end)}, below zero from {run.place(worth.since)} on; its highest level is "
        f"{figure(worth.best)}{'; the reward rises all the same' if learns else ''}",
        steps=(worth.since,),
        values={"late": worth.late, "end": worth.end, "best": worth.best, "share_below_zero": worth.below},
        present=not learns,
    )


def _falls_since(run: Run, step: float) -> bool:
    """Say whether the reward falls from a step on, whatever it did before."""
    rewards = rewards_of(run)
    return rewards is not None and trend(rewards.where(rewards.step >= step)) < 0


def critic_explains_nothing(run: Run) -> Evidence | None:
    """The critic explains none of the variance of returns, from the first record to the last.

    Not this when: the reward rises all the same; returns do not vary; it explains something now and then.
    """
    _explained(run)
    worth = run["explained_variance"].finite
    share = float(np.mean(np.abs(worth.value) <= RUN_CRITIC_NOTHING))
    if share < ALWAYS:
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
