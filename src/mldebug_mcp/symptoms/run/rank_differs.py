"""One rank is unlike the others."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import reduce

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.statistics import end_level, median, noise
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

_RANK = r"(?:rank|gpu|node|worker|device|host)[_-]?(?P<rank>\d+)"
_FIRST = re.compile(rf"{_RANK}[/_.-](?P<metric>.+)", re.IGNORECASE)
_LAST = re.compile(rf"(?P<metric>.+)[/_.-]{_RANK}", re.IGNORECASE)
_TIME = re.compile(r"(?:.*[_/])?(?:time|latency|duration)(?:_m?s)?", re.IGNORECASE)
_LOSS = re.compile(r"(?:.*[_/])?(?:loss|grad_norm)", re.IGNORECASE)
SLOWER = 1.2
"""Times the slowest of the others. Chosen: shares of a batch differ by less."""
SIGMAS = 3.0
"""Times the noise from record to record between a rank and the others. Chosen: a median has less noise than that."""
LEAST_RANKS, LEAST_RECORDS = 3, 5
"""Ranks, and records of each. Chosen: of two nobody knows which is unlike, and a median needs some records."""
ALIKE, PARTED = 1e-3, 1e-2
"""Relative difference of norms that are one, and of those that are not. Chosen: ranks reduce in one order."""


@symptom(
    any_of=("*rank*", "*gpu*", "*node*", "*worker*", "*device*", "*host*"),
    sources=("bekman_mle",),
    whole_run=True,
    background=0.002,
    as_chosen=True,
)
def rank_differs(run: Run) -> Evidence | None:
    """A rank parts from the others: it takes longer, has a loss that is not finite first, or gets another gradient.

    A gradient norm that was the same on all ranks, as their gradients are averaged, and no longer is, says that they
    train different models. Not this when: all ranks are slow, or slow in turn; there are but two of them and no
    gradient norms; norms differ from the start, as those of shards do.
    """
    parted = _parted(run)
    if parted is not None:
        return parted
    judged = [(metric, ranks) for metric, ranks in _by_metric(run).items() if len(ranks) >= LEAST_RANKS]
    if not judged:
        raise CannotTell(f"times or losses of {LEAST_RANKS} ranks, each under its own name, are not logged")
    found = (_broken(run, *one) or _slow(*one) for one in judged)
    return next((one for one in found if one is not None), None)


def _by_metric(run: Run) -> Mapping[str, Mapping[int, Series]]:
    """Return the times and losses that are logged by rank, by metric and rank."""
    metrics: dict[str, dict[int, Series]] = defaultdict(dict)
    for name in run.series:
        match = _FIRST.fullmatch(name) or _LAST.fullmatch(name)
        if match and (_TIME.fullmatch(match["metric"]) or _LOSS.fullmatch(match["metric"])):
            metrics[match["metric"]][int(match["rank"])] = run[name]
    return metrics


def _parted(run: Run) -> Evidence | None:
    """Say where gradient norms that were the same on all ranks part for good."""
    ranks = {rank: one.finite for rank, one in _by_metric(run).get("grad_norm", {}).items()}
    if len(ranks) < 2:
        return None
    steps = reduce(np.intersect1d, (one.step for one in ranks.values()))
    if len(steps) < 2 * LEAST_RECORDS:
        return None
    norms = np.array([one.value[np.searchsorted(one.step, steps)] for one in ranks.values()])
    apart = np.ptp(norms, axis=0) / np.maximum(np.abs(norms).max(axis=0), np.finfo(float).tiny)
    last_alike = np.flatnonzero(apart <= PARTED)
    if float(apart[:LEAST_RECORDS].max()) > ALIKE or last_alike[-1] > len(steps) - 1 - LEAST_RECORDS:
        return None
    at = int(last_alike[-1]) + 1
    away = np.abs(norms[:, at:] - np.median(norms[:, at:], axis=0)).mean(axis=1)
    rank = list(ranks)[int(np.argmax(away))]
    return Evidence(
        f"grad_norm is the same on all {len(ranks)} ranks up to {run.place(steps[at - 1])} and "
        f"differs from {run.place(steps[at])} on, most on rank {rank}",
        steps=(float(steps[at]),),
        values={"rank": rank, "ranks": len(ranks)},
    )


def _broken(run: Run, metric: str, ranks: Mapping[int, Series]) -> Evidence | None:
    """Say whether one rank has values that are not finite before any other: averaged gradients bring them to all."""
    since = {rank: one.step[~np.isfinite(one.value)] for rank, one in ranks.items()}
    first = sorted((float(steps[0]), rank) for rank, steps in since.items() if len(steps))
    if not first or not _LOSS.fullmatch(metric) or (len(first) > 1 and first[1][0] <= first[0][0]):
        return None
    step, rank = first[0]
    later = f"only from {figure(first[1][0])} on, or not at all" if len(first) > 1 else "nowhere"
    return Evidence(
        f"{metric} of rank {rank} is not finite from {run.place(step)} on, that of the other "
        f"{len(ranks) - 1} ranks {later}",
        steps=(step,),
        values={"rank": rank, "ranks": len(ranks)},
    )


def _slow(metric: str, ranks: Mapping[int, Series]) -> Evidence | None:
    """Say whether one rank takes clearly longer than the rest."""
    times = {rank: series.finite for rank, series in ranks.items()}
    if not _TIME.fullmatch(metric) or min(map(len, times.values())) < LEAST_RECORDS:
        return None
    level = {rank: median(series.value) for rank, series in times.items()}
    slowest = max(level, key=lambda rank: level[rank])
    others = [value for rank, value in level.items() if rank != slowest]
    usual, spread = median(np.array(others)), max(noise(series.value) for series in times.values())
    if usual <= 0 or level[slowest] < SLOWER * max(others) or level[slowest] - usual < SIGMAS * spread:
        return None
    series = times[slowest]
    slow = series.value > (usual + level[slowest]) / 2
    step = float(series.step[int(np.argmax(slow))])
    return Evidence(
        f"{metric} of rank {slowest} is {figure(level[slowest])} in the median and {figure(end_level(series.value))} "
        f"at the end; the other {len(others)} ranks have {figure(min(others))} to {figure(max(others))}",
        steps=(step,),
        values={"rank": slowest, "level": level[slowest], "others": usual, "ranks": len(ranks)},
    )
