"""Is one rank unlike the others, and in what?"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import reduce

import numpy as np

from mldebug_mcp.checks.asking import answers_of, by_outcome, outcome_of, with_attribute
from mldebug_mcp.checks.check import Answers, CannotTell, Evidence, question
from mldebug_mcp.checks.curve import end_level, noise
from mldebug_mcp.checks.progress import is_late
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import figure
from mldebug_mcp.logs.run import Run, Series

# What single ranks log of times, losses and gradient norms, and which rank is unlike the others.


_RANK = r"(?:rank|gpu|node|worker|device|host)[_-]?(?P<rank>\d+)"
_FIRST = regex(rf"{_RANK}[/_.-](?P<metric>.+)", re.IGNORECASE)
_LAST = regex(rf"(?P<metric>.+)[/_.-]{_RANK}", re.IGNORECASE)
_TIME = regex(r"(?:.*[_/])?(?:time|latency|duration)(?:_m?s)?", re.IGNORECASE)
_LOSS = regex(r"(?:.*[_/])?(?:loss|grad_norm)", re.IGNORECASE)
MIN_RECORDS_PER_RANK = 5
"""Records of each rank. Chosen: a median needs some records."""
ALIKE = 1e-3
"""Relative difference of norms that are one. Chosen: ranks reduce in one order."""
PARTED = 1e-2
"""Relative difference of norms that are not one. Chosen: ranks reduce in one order."""

MID_RUN = 0.1
"""Share of the run beyond which a log begins in mid-run. Chosen: by then ranks may have parted."""
MID_RUN_STEPS = 50.0
"""Steps beyond which a log begins in mid-run. Chosen: by then ranks may have parted."""
MIN_LOSS_RATIO = 1.5
"""Times the losses of all other ranks that one ends above them. Chosen: shares of one batch have losses that scatter
about the same level."""
FAR_SIGMAS = 3.0
"""Times the noise from record to record that it ends above them. Chosen: shares of one batch have losses that scatter
about the same level."""


def by_metric(run: Run) -> Mapping[str, Mapping[int, Series]]:
    """Return the times and losses that are logged by rank, by metric and rank."""
    metrics: dict[str, dict[int, Series]] = defaultdict(dict)
    for name in run.series:
        match = _FIRST.fullmatch(name) or _LAST.fullmatch(name)
        if match and (_TIME.fullmatch(match["metric"]) or _LOSS.fullmatch(match["metric"])):
            metrics[match["metric"]][int(match["rank"])] = run[name]
    return metrics


# Is one rank unlike the others, and in what?


SLOWER = 1.2
"""Times the slowest of the others. Chosen: shares of a batch differ by less."""
MIN_RANK_SIGMAS = 3.0
"""Times the noise from record to record between a rank and the others. Chosen: a median has less noise than that."""
LEAST_RANKS = 3
"""Ranks. Chosen: of two nobody knows which is unlike."""


def rank_differs(run: Run) -> Evidence | None:
    """A rank parts from the others: it takes longer, has another gradient, or a loss far above or not finite first.

    A gradient norm that was the same on all ranks, as their gradients are averaged, and no longer is, says that they
    train different models. Not this when: all ranks are slow, or slow in turn; there are but two of them and no
    gradient norms; norms differ from the start, as those of shards do.
    """
    if (part := _parted(run)) is not None:
        return part
    judged = [(metric, ranks) for metric, ranks in by_metric(run).items() if len(ranks) >= LEAST_RANKS]
    if not judged:
        raise CannotTell(f"times or losses of {LEAST_RANKS} ranks, each under its own name, are not logged")
    found = (_broken(run, *pair) or _astray(run, *pair) or _slow(*pair) for pair in judged)
    return next((evidence for evidence in found if evidence is not None), None)


def _parted(run: Run) -> Evidence | None:
    """Return where gradient norms that were the same on all ranks part for good."""
    ranks = {rank: series.finite for rank, series in by_metric(run).get("grad_norm", {}).items()}
    if len(ranks) < 2:
        return None
    steps = reduce(np.intersect1d, (rank.step for rank in ranks.values()))
    if len(steps) < 2 * MIN_RECORDS_PER_RANK:
        return None
    norms = np.array([rank.value[np.searchsorted(rank.step, steps)] for rank in ranks.values()])
    apart = np.ptp(norms, axis=0) / np.maximum(np.abs(norms).max(axis=0), np.finfo(float).tiny)
    last_alike = np.flatnonzero(apart <= PARTED)
    if float(apart[:MIN_RECORDS_PER_RANK].max()) > ALIKE or last_alike[-1] > len(steps) - 1 - MIN_RECORDS_PER_RANK:
        return None
    at = int(last_alike[-1]) + 1
    away = np.abs(norms[:, at:] - np.median(norms[:, at:], axis=0)).mean(axis=1)
    farthest = list(ranks)[int(np.argmax(away))]
    return Evidence(
        f"grad_norm is the same on all {len(ranks)} ranks up to {run.place(steps[at - 1])} and differs from "
        f"{run.place(steps[at])} on, most on rank {farthest}",
        steps=(float(steps[at]),),
        values={"rank": farthest, "ranks": len(ranks)},
    )


def _broken(run: Run, metric: str, ranks: Mapping[int, Series]) -> Evidence | None:
    """Return the one rank whose losses are not finite before any other's: averaged gradients bring them to all."""
    since = {rank: series.step[~np.isfinite(series.value)] for rank, series in ranks.items()}
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


def _astray(run: Run, metric: str, ranks: Mapping[int, Series]) -> Evidence | None:
    """Return the rank whose losses end far above those of all others, with which they began.

    Of a log that begins in mid-run it is not known how they began.
    """
    losses = {rank: series.finite for rank, series in ranks.items()}
    if not _LOSS.fullmatch(metric) or min(map(len, losses.values())) < 2 * MIN_RECORDS_PER_RANK:
        return None
    end = {rank: end_level(series.value) for rank, series in losses.items()}
    rank = max(end, key=lambda number: end[number])
    others, series = [value for number, value in end.items() if number != rank], losses[rank]
    scatter = max(noise(loss.value) for loss in losses.values())
    began = max(median(loss.value[:MIN_RECORDS_PER_RANK]) for other, loss in losses.items() if other != rank)
    alike = median(series.value[:MIN_RECORDS_PER_RANK]) < MIN_LOSS_RATIO * began
    if (
        not (alike or is_late(run, run.first_step, MID_RUN, MID_RUN_STEPS))
        or not 0 < MIN_LOSS_RATIO * max(others) < end[rank]
        or end[rank] - max(others) < FAR_SIGMAS * scatter
    ):
        return None
    usual = median(np.array(others))
    low = np.flatnonzero(series.value < (usual + end[rank]) / 2)
    leaves = float(series.step[min(int(low[-1]) + 1, len(series) - 1) if len(low) else 0])
    where = "in the whole log" if leaves <= run.first_step else f"which it leaves from {run.place(leaves)} on"
    return Evidence(
        f"{metric} of rank {rank} is about {figure(end[rank])} at the end, and about {figure(usual)} that "
        f"of the other {len(others)} ranks, {where}",
        steps=(leaves,),
        values={"rank": rank, "end": end[rank], "others": usual, "ranks": len(ranks)},
    )


def _slow(metric: str, ranks: Mapping[int, Series]) -> Evidence | None:
    """Return the rank that takes the longest, if it takes far longer than all others."""
    times = {rank: series.finite for rank, series in ranks.items()}
    if not _TIME.fullmatch(metric) or min(map(len, times.values())) < MIN_RECORDS_PER_RANK:
        return None
    level = {rank: median(series.value) for rank, series in times.items()}
    rank = max(level, key=lambda number: level[number])
    others, series = [value for number, value in level.items() if number != rank], times[rank]
    usual, scatter = median(np.array(others)), max(noise(each.value) for each in times.values())
    if usual <= 0 or level[rank] < SLOWER * max(others) or level[rank] - usual < MIN_RANK_SIGMAS * scatter:
        return None
    first = float(series.step[int(np.argmax(series.value > (usual + level[rank]) / 2))])
    return Evidence(
        f"{metric} of rank {rank} is {figure(level[rank])} in the median and about {figure(end_level(series.value))} "
        f"at the end; the other {len(others)} ranks have {figure(min(others))} to {figure(max(others))}",
        steps=(first,),
        values={"rank": rank, "level": level[rank], "others": usual, "ranks": len(ranks)},
    )


def rank_computes_otherwise(unlike: Evidence) -> Evidence | None:
    """A rank differs from the others in its loss or its gradient: it computes something else.

    Not this when: it only takes longer.
    """
    return None if "level" in unlike.values else unlike


@question(
    outcome_of(rank_differs, 0.002, "bekman_mle", as_chosen=True),
    outcome_of(rank_computes_otherwise, 0.3, of="rank_differs", as_chosen=True),
    any_of=("*rank*", "*gpu*", "*node*", "*worker*", "*device*", "*host*"),
    whole=True,
)
def ranks(run: Run) -> Answers:
    """Compare the ranks, then ask what they differ in."""
    return with_attribute(answers_of(by_outcome((rank_differs,), run)), "rank_differs", rank_computes_otherwise)
