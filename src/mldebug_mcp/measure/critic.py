"""What a critic is worth: its loss, its values and the variance that it explains, against the returns on record."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.rewards import seems_to_learn
from mldebug_mcp.measure.statistics import blocks, median

NOTHING = 0.05
"""How near to zero an explained variance is none. Chosen: by hand."""
MOSTLY = 0.75
"""Share of the records in which it is none, for a critic that explains nothing. Chosen: by hand."""
IMPOSSIBLE = 1e6
"""Times the squared reward: no squared error of a value reaches it. Chosen: with a discount of 0.99 values err by 200
rewards, and by some times that before they settle."""
LEAST_IMPOSSIBLE = 1000.0
"""The least of that where the longest episode bounds the returns, as many rewards as it has steps. Chosen: most
episodes may bring nothing, and few a lot."""

_SHORT = re.compile(r"(?:.*/)?(?:mean|avg|average)_?q", re.IGNORECASE)
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
        nothing=bool(np.mean(np.abs(value) < NOTHING) >= MOSTLY),
        records=len(value),
    )


@dataclass(frozen=True, slots=True)
class ActionValues:
    """The values of actions against the returns that were earned.

    Args:
        series: Their size, as logged.
        reached: Its median over the later half.
        expected: The largest value that the returns on record explain.
        growth: The size at the end over that in the middle of the log.
        earns_more: Whether the return rises over the log.
    """

    series: Series
    reached: float
    expected: float
    growth: float
    earns_more: bool


def action_values(run: Run) -> ActionValues | None:
    """Return the largest of the values that a critic gives to actions, None where they or returns are not logged."""
    known = run.with_role(Quantity.VALUE, phase="train", parts=True)
    logged = [one.finite for one in (*known, *(run[name] for name in run.series if _SHORT.fullmatch(name)))]
    sizes = [Series(one.name, one.step, np.abs(one.value)) for one in logged if len(one)]
    scale = return_scale(run)
    if not sizes or scale is None:
        return None
    one = max(sizes, key=lambda series: median(series.value[len(series) // 2 :]))
    level = blocks(one.value, 8).level
    middle = float(level[len(level) // 2])
    return ActionValues(
        series=one,
        reached=median(one.value[len(one) // 2 :]),
        expected=max(scale, _discounted(run) or 0.0),
        growth=float(level[-1]) / middle if middle > 0 else 1.0,
        earns_more=seems_to_learn(run),
    )


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
