"""Do two logs of one folder tell of the same run? By what they hold, not by what they are called.

The same losses at the same steps, or one after another where they count otherwise, are those of one run; other losses
at the same steps are another's. Logs without a result in common, such as one of training and one of evaluation, belong
together, and so do the logs of the ranks of one run, which may tell other losses.
"""

from __future__ import annotations

import re

import numpy as np

from mldebug_mcp.logs.continued import goes_further
from mldebug_mcp.logs.run import Run, Series

RESULTS = ("loss", "eval_loss", "reward")
"""Metrics that no two runs share number by number."""
LEAST_COMMON, ALIKE = 3, 1e-3
"""Values that two logs must share to be compared, and the relative difference that rounding makes. Chosen."""
MOST = 0.5
"""Share of values from which on two logs tell the same. Chosen."""
NEAR = 0.15
"""Share of its range by which a result may lie apart in logs of two formats, one of which may have averaged. Chosen."""

_RANK = re.compile(
    r"(?:rank|worker|gpu|node|proc(?:ess)?|task|local|host|device|stdout|stderr)s?[-_.]?\d*", re.IGNORECASE
)

Named = tuple[str, Run]


def grouped(runs: list[Named]) -> list[list[Named]]:
    """Put together the logs that are of one run, each group under its fullest log."""
    groups: list[list[Named]] = []
    for item in sorted(runs, key=lambda item: -item[1].records):
        own = next((group for group in groups if all(_is_same(one, item) for one in group)), None)
        if own is None:
            groups.append([item])
        else:
            own.append(item)
    return groups


def _is_same(one: Named, other: Named) -> bool:
    (name, run), (other_name, another) = one, other
    if not run.series or not another.series or _without_rank(name) == _without_rank(other_name):
        return True
    if goes_further(run, another) or goes_further(another, run):
        return True
    told = [_tell_the_same(run, another, metric) for metric in RESULTS if metric in run and metric in another]
    return True in told or False not in told


def _without_rank(name: str) -> str:
    """Return a name without what tells the ranks of a run apart; the whole name where nothing does."""
    bare = _RANK.sub("", name)
    return bare if bare != name else f"{name}/"


def _tell_the_same(one: Run, other: Run, metric: str) -> bool | None:
    """Say whether two logs tell the same values of a metric, None where that cannot be seen."""
    here, there = one[metric], other[metric]
    if min(len(here), len(there)) < LEAST_COMMON:
        return None
    steps, at, beside = np.intersect1d(here.step, there.step, return_indices=True)
    if one.step_name != other.step_name or len(steps) < LEAST_COMMON:
        return True if _shares_values(here, there) else None
    alike = np.isclose(here.value[at], there.value[beside], rtol=ALIKE, atol=0, equal_nan=True)
    if float(alike.mean()) >= MOST:
        return True
    if one.formats == other.formats:
        return False
    apart = np.abs(here.value[at] - there.value[beside])
    spread = float(np.ptp(here.finite.value)) if len(here.finite) else 0.0
    return bool(np.nanmedian(np.append(apart, np.inf)) <= NEAR * spread)


def _shares_values(one: Series, other: Series) -> bool:
    """Say whether most values of the shorter series stand in the longer one too."""
    short, long = sorted((one.finite.value, other.finite.value), key=len)
    if len(short) < LEAST_COMMON:
        return False
    long = np.sort(long)
    place = np.searchsorted(long, short).clip(1, len(long) - 1) if len(long) > 1 else np.zeros(len(short), dtype=int)
    nearest = np.minimum(np.abs(long[place] - short), np.abs(long[place - 1] - short))
    return float(np.mean(nearest <= ALIKE * np.abs(short))) >= MOST
