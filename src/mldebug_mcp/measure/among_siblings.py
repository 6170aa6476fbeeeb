"""The result of a run among those of its siblings: what is normal for this recipe.

Siblings are runs of the same sweep (`logs.siblings`). Some of them may be sick, too: so what is normal is their median,
and how far apart sound ones lie their median absolute deviation, at least by what two seeds of one recipe differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs import Run, Series
from mldebug_mcp.measure.run_result import END, result_of
from mldebug_mcp.measure.statistics import mad, median

FEWEST = 3
"""Siblings with the same metric that tell what is normal. Chosen: the median of three survives one sick run."""
SEEDS_DIFFER = 0.02
"""Share of the usual level by which two seeds of one recipe differ. Chosen: twice the percent of where runs are
compared with a good one."""
REACHED = 0.8
"""Share of the steps of this run that a sibling has to have reached. Chosen: one that ended earlier tells less."""


@dataclass(frozen=True, slots=True)
class AmongSiblings:
    """A result beside those of siblings at the same step.

    Args:
        metric: Its name.
        own: Where this run stands, the median of its last tenth.
        usual: The median of the siblings there.
        spread: How far apart they are, as a standard deviation.
        gained: By how much the siblings' median got better since their first values.
        count: How many siblings were there.
        worse_by: By how much this run is worse than usual; negative where it is better.
    """

    metric: str
    own: float
    usual: float
    spread: float
    gained: float
    count: int
    worse_by: float


def among_siblings(run: Run) -> AmongSiblings | None:
    """Return where the result of a run stands among its siblings; None with fewer than `FEWEST` to compare with."""
    result = result_of(run)
    if result is None:
        return None
    until = run[result.metric].finite.step[-1]
    others = [one for one in (_of(sibling.run, result.metric, until) for sibling in run.siblings) if one is not None]
    if len(others) < FEWEST:
        return None
    better = 1 if result.higher_is_better else -1
    ends = np.array([end for _, end in others])
    usual, first = median(ends), median(np.array([start for start, _ in others]))
    spread = max(mad(ends), SEEDS_DIFFER * abs(usual))
    gained, worse_by = better * (usual - first), better * (usual - result.last)
    return AmongSiblings(result.metric, result.last, usual, spread, gained, len(others), worse_by)


def _of(sibling: Run, metric: str, until: float) -> tuple[float, float] | None:
    """Return the first value of a sibling's metric and its level by a step, as the run's own is taken."""
    series: Series | None = sibling.series.get(metric)
    if series is None or not len(series.finite) or series.finite.step[-1] < REACHED * until:
        return None
    before = series.finite.between(-np.inf, until)
    if not len(before):
        return None
    return float(before.value[0]), median(before.value[-max(1, len(before) // END) :])
