"""The result of a run, how a metric is looked up by name, and how the result compares with sibling runs."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.checks.curve import mad
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.metrics import canonical
from mldebug_mcp.logs.names.quantities import LOSSES

# The one lookup of a metric: by the name that it was logged with, its canonical name, or its role.


_QUANTITIES = frozenset(map(str, Quantity))


def named(run: Run, name: str) -> list[Series]:
    """Return the series that a name means, in any case: one that is called so, else all that have the role.

    `lr`, `val_loss`, `train/loss` mean what a log calls `learning_rate`, `eval_loss`, `loss`.

    `loss`, `grad_norm`, `reward` are roles, and `eval_loss` that of evaluations; the whole is meant, or where only
    parts are logged, such as the norms of layers, these.
    """
    wanted = name.strip().lower()
    called = [
        series for key, series in run.series.items() if wanted in (key.lower(), (series.logged_as or key).lower())
    ]
    if not called and (same := canonical(name.strip())) in run.series:
        return [run[same]]
    quantity, phase = wanted.removeprefix("eval_"), "eval" if wanted.startswith("eval_") else "train"
    if called or quantity not in _QUANTITIES:
        return called[:1]
    whole = list(run.with_role(Quantity(quantity), phase=phase))
    found = whole or list(run.with_role(Quantity(quantity), phase=phase, parts=True))
    return [run[series.name] for series in found]


# The result of a run: the metric by which runs of one kind are compared, where it ended and where it was best.


RUN_END_DIVISOR = 10
"""The end of a run is its last tenth: one value of many. Chosen: as where a run is compared with a good one."""
_REWARDS = frozenset({Quantity.REWARD, Quantity.REWARD_ACCURACY})


@dataclass(frozen=True, slots=True)
class Result:
    """A result.

    Args:
        metric: Its name.
        last: The median of the last tenth of its values.
        best: The best single value.
        best_step: Where that was logged.
        higher_is_better: Which way is better.
    """

    metric: str
    last: float
    best: float
    best_step: float
    higher_is_better: bool


def result_of(run: Run, metric: str = "") -> Result | None:
    """Return the result of a run, or None if it logged none.

    Args:
        run: The run.
        metric: Which metric, by its name as read or as logged, or by its role; by default the evaluation's loss, then a
            reward, then a score of evaluation, then the training loss.
    """
    series = next(iter(named(run, metric)), None) if metric else _usual(run)
    if series is None or not len(series.finite):
        return None
    finite, higher = series.finite, improves_upwards(series)
    at = int(np.argmax(finite.value) if higher else np.argmin(finite.value))
    end = finite.value[-max(1, len(finite) // RUN_END_DIVISOR) :]
    return Result(series.name, median(end), float(finite.value[at]), float(finite.step[at]), higher)


def improves_upwards(series: Series) -> bool:
    """Say whether higher values of a metric are better."""
    role = series.role
    return role is not None and (role.quantity.higher_is_better or role.quantity in _REWARDS)


def _usual(run: Run) -> Series | None:
    wanted = (
        run.with_role(Quantity.LOSS, phase="eval"),
        run.with_role(Quantity.REWARD),
        run.with_role(*(quantity for quantity in Quantity if quantity.higher_is_better), phase="eval"),
        run.with_role(Quantity.LOSS, phase="train"),
        run.with_role(*LOSSES),
    )
    return next((series for found in wanted for series in found if len(series.finite)), None)


# The result of a run among those of its siblings: what is normal for this recipe.
#
# Siblings are runs of the same sweep (`logs.siblings`). Some of them may be sick, too: so what is normal is their
# median, and how far apart sound ones lie their median absolute deviation, at least by what two seeds of one recipe
# differ.


MIN_SIBLINGS = 3
"""Siblings with the same metric that tell what is normal. Chosen: the median of three survives one sick run."""
SEEDS_DIFFER = 0.02
"""Share of the usual level by which two seeds of one recipe differ. Chosen: twice the percent of where runs are
compared with a good one."""
MIN_SIBLING_STEP_SHARE = 0.8
"""Share of the steps of this run that a sibling has to have reached. Chosen: one that ended earlier tells less."""
HALF_OF_IT = 0.5
"""Share of what a run is worse than usual by which a sibling is ahead of it. Chosen: nearer to the usual than to it."""


@dataclass(frozen=True, slots=True)
class AmongSiblings:
    """A result and those of siblings at the same step.

    Args:
        metric: Its name.
        own: Where this run stands, the median of its last tenth.
        usual: The median of the siblings there.
        spread: How far apart they are, as a standard deviation.
        gained: By how much the siblings' median got better since their first values.
        count: How many siblings were there.
        worse_by: By how much this run is worse than usual; negative where it is better.
        ahead: The siblings that are better than this run by half of that at least.
    """

    metric: str
    own: float
    usual: float
    spread: float
    gained: float
    count: int
    worse_by: float
    ahead: tuple[Run, ...]


def among_siblings(run: Run) -> AmongSiblings | None:
    """Return where the result of a run stands among its siblings; None with fewer than `MIN_SIBLINGS`."""
    result = result_of(run)
    if result is None:
        return None
    until = run[result.metric].finite.step[-1]
    found = [(sibling.run, _sibling_levels(sibling.run, result.metric, until)) for sibling in run.siblings]
    others = [other for _, other in found if other is not None]
    if len(others) < MIN_SIBLINGS:
        return None
    better = 1 if result.higher_is_better else -1
    ends = np.array([end for _, end in others])
    usual, first = median(ends), median(np.array([start for start, _ in others]))
    spread = max(mad(ends), SEEDS_DIFFER * abs(usual))
    gained, worse_by = better * (usual - first), better * (usual - result.last)
    ahead = tuple(
        sibling
        for sibling, other in found
        if other is not None and better * (other[1] - result.last) >= HALF_OF_IT * worse_by
    )
    return AmongSiblings(result.metric, result.last, usual, spread, gained, len(others), worse_by, ahead)


def _sibling_levels(sibling: Run, metric: str, until: float) -> tuple[float, float] | None:
    """Return the first value of a sibling's metric and its level by a step, as the run's own is taken."""
    series: Series | None = sibling.series.get(metric)
    if series is None or not len(series.finite) or series.finite.step[-1] < MIN_SIBLING_STEP_SHARE * until:
        return None
    before = series.finite.between(-np.inf, until)
    if not len(before):
        return None
    return float(before.value[0]), median(before.value[-max(1, len(before) // RUN_END_DIVISOR) :])
