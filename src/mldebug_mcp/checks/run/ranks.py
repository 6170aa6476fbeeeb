"""Is one rank unlike the others, and in what?"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from mldebug_mcp.checks.check import (
    Answers,
    CannotTell,
    Evidence,
    answers_of,
    by_outcome,
    outcome_of,
    question,
    with_attribute,
)
from mldebug_mcp.checks.curve import end_level, noise
from mldebug_mcp.checks.progress import is_late
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import figure
from mldebug_mcp.logs.names import Quantity, role_of
from mldebug_mcp.logs.names.quantities import CLOCKS, THROUGHPUTS
from mldebug_mcp.logs.run import Run, Series

# What single ranks log of times, throughputs, losses and gradient norms, and which rank is unlike the others.


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
    """Return the times, throughputs and losses that are logged by rank, by metric and rank."""
    metrics: dict[str, dict[int, Series]] = defaultdict(dict)
    for name in run.series:
        match = _FIRST.fullmatch(name) or _LAST.fullmatch(name)
        if match and (_is_time(metric := match["metric"]) or _is_throughput(metric) or _LOSS.fullmatch(metric)):
            metrics[match["metric"]][int(match["rank"])] = run[name]
    return metrics


def _is_time(metric: str) -> bool:
    role = role_of(metric)
    return _TIME.fullmatch(metric) is not None and (role is None or role.quantity not in CLOCKS)


def _is_throughput(metric: str) -> bool:
    role = role_of(metric)
    return role is not None and role.quantity in THROUGHPUTS


# Is one rank unlike the others, and in what?


SLOWER = 1.2
"""Times the slowest of the others. Chosen: shares of a batch differ by less."""
MIN_SHARE_OF_STEP = 0.05
"""Share of the step time by which it is slower. Chosen: less of a difference costs nothing worth a repair."""
MIN_RANK_SIGMAS = 3.0
"""Times the noise from record to record between a rank and the others. Chosen: a median has less noise than that."""
LOST_ALONE = "lost_alone"
"""The value that says that one rank is not finite and no other one follows."""
LEAST_RANKS = 3
"""Ranks. Chosen: of two nobody knows which is unlike."""


def rank_differs(run: Run) -> Evidence | None:
    """A rank parts from the others: it is slower, has another gradient, or a loss far above or not finite first.

    A gradient norm that was the same on all ranks, as their gradients are averaged, and no longer is, says that they
    train different models. Not this when: all ranks are slow, or slow in turn; there are but two of them and no
    gradient norms; norms differ from the start, as those of shards do.
    """
    if (part := _parted(run)) is not None:
        return part
    judged = [(metric, ranks) for metric, ranks in by_metric(run).items() if len(ranks) >= LEAST_RANKS]
    if not judged:
        raise CannotTell(f"times or losses of {LEAST_RANKS} ranks, each under its own name, are not logged")
    found = (_broken(run, *pair) or _astray(run, *pair) for pair in judged)
    return next((evidence for evidence in found if evidence is not None), None) or _slow(run, judged)


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
        values={"rank": rank, "ranks": len(ranks), LOST_ALONE: float(len(first) == 1)},
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


def _slow(run: Run, judged: Sequence[tuple[str, Mapping[int, Series]]]) -> Evidence | None:
    """Return the slowest rank, by the time that explains most of it: a wait for data before the whole step."""
    found = [evidence for pair in judged if (evidence := _slow_by(run, *pair)) is not None]
    return max(found, key=lambda evidence: evidence.values["times"], default=None)


def _slow_by(run: Run, metric: str, ranks: Mapping[int, Series]) -> Evidence | None:
    """Return the rank that takes far longer than all others, or has far less throughput."""
    finite = {rank: series.finite for rank, series in ranks.items()}
    sign = 1 if _is_time(metric) else -1 if _is_throughput(metric) else 0
    if not sign or min(map(len, finite.values())) < MIN_RECORDS_PER_RANK:
        return None
    level = {rank: median(series.value) for rank, series in finite.items()}
    rank = max(level, key=lambda number: sign * level[number])
    others, series = [value for number, value in level.items() if number != rank], finite[rank]
    usual, next_one = median(np.array(others)), max(sign * value for value in others) * sign
    slow, fast = (level[rank], next_one) if sign > 0 else (next_one, level[rank])
    times = slow / fast if fast > 0 else np.inf
    if usual <= 0 or times < SLOWER:
        return None
    apart = abs(level[rank] - usual)
    if apart < MIN_RANK_SIGMAS * max(noise(curve.value) for curve in finite.values()):
        return None
    step_time = next(run.with_role(Quantity.STEP_TIME, phase="train"), None) if sign > 0 else None
    if step_time is not None and len(step_time.finite) and apart < MIN_SHARE_OF_STEP * median(step_time.finite.value):
        return None
    return Evidence(
        f"{metric} of rank {rank} is {figure(level[rank])} in the median and about {figure(end_level(series.value))} "
        f"at the end; the other {len(others)} ranks have {figure(min(others))} to {figure(max(others))}",
        steps=(float(series.step[int(np.argmax(sign * (series.value - (usual + level[rank]) / 2) > 0))]),),
        values={"rank": rank, "level": level[rank], "others": usual, "ranks": len(ranks), "times": times},
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
