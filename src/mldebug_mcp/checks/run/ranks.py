"""Is one rank unlike the others, and in what?"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from mldebug_mcp.checks.asking import answers_of, by_outcome, outcome_of, with_attribute
from mldebug_mcp.checks.check import Answers, CannotTell, Evidence, question
from mldebug_mcp.checks.curve import end_level, noise
from mldebug_mcp.checks.progress import is_late
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import dataclass, regex
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


@dataclass(frozen=True, slots=True)
class Parted:
    """Where gradient norms that were the same on all ranks part for good.

    Args:
        before: The last step at which they are the same.
        step: The next one.
        rank: The rank that is farthest from the others from there on.
        ranks: How many there are.
    """

    before: float
    step: float
    rank: int
    ranks: int


@dataclass(frozen=True, slots=True)
class Broken:
    """A rank whose values are not finite before those of any other.

    Args:
        step: From where on.
        rank: The rank.
        next: From where on another's are not; None where all others are finite.
    """

    step: float
    rank: int
    next: float | None


@dataclass(frozen=True, slots=True)
class Astray:
    """A rank whose loss goes its own way.

    Args:
        rank: The rank.
        end: What its loss comes to.
        usual: That of the others, in the median.
        step: From where on it is nearer to its end than to theirs.
    """

    rank: int
    end: float
    usual: float
    step: float


@dataclass(frozen=True, slots=True)
class Slowest:
    """The rank that takes the longest, or is the least fast.

    Args:
        rank: The rank.
        level: Its median time, or throughput.
        end: Its level at the end.
        others: The medians of the others.
        usual: The median of these.
        times: How many times slower it is than the slowest of them.
        noise: The largest noise from record to record of any rank.
        step: Where it is first beyond half way from `usual` to `level`.
    """

    rank: int
    level: float
    end: float
    others: tuple[float, ...]
    usual: float
    times: float
    noise: float
    step: float


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


def parted(run: Run) -> Parted | None:
    """Return where gradient norms that were the same on all ranks part for good, None where they do not."""
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
    return Parted(float(steps[at - 1]), float(steps[at]), list(ranks)[int(np.argmax(away))], len(ranks))


def broken(metric: str, ranks: Mapping[int, Series]) -> Broken | None:
    """Return the one rank whose losses are not finite before any other's: averaged gradients bring them to all."""
    since = {rank: series.step[~np.isfinite(series.value)] for rank, series in ranks.items()}
    first = sorted((float(steps[0]), rank) for rank, steps in since.items() if len(steps))
    if not first or not _LOSS.fullmatch(metric) or (len(first) > 1 and first[1][0] <= first[0][0]):
        return None
    return Broken(*first[0], first[1][0] if len(first) > 1 else None)


def astray(metric: str, ranks: Mapping[int, Series], *, late: bool = False) -> Astray | None:
    """Return the rank whose losses end far above those of all others, with which they began.

    Args:
        metric: What is logged by rank.
        ranks: It by rank.
        late: Whether the log begins in mid-run, so that how they began is not known.
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
        not (alike or late)
        or not 0 < MIN_LOSS_RATIO * max(others) < end[rank]
        or end[rank] - max(others) < FAR_SIGMAS * scatter
    ):
        return None
    usual = median(np.array(others))
    low = np.flatnonzero(series.value < (usual + end[rank]) / 2)
    return Astray(rank, end[rank], usual, float(series.step[min(int(low[-1]) + 1, len(series) - 1) if len(low) else 0]))


def slowest(metric: str, ranks: Mapping[int, Series]) -> Slowest | None:
    """Return the rank that takes the longest or has the least throughput.

    It is None if the metric is neither, or too little of it is logged.
    """
    finite = {rank: series.finite for rank, series in ranks.items()}
    sign = 1 if _is_time(metric) else -1 if _is_throughput(metric) else 0
    if not sign or min(map(len, finite.values())) < MIN_RECORDS_PER_RANK:
        return None
    level = {rank: median(series.value) for rank, series in finite.items()}
    rank = max(level, key=lambda number: sign * level[number])
    others = tuple(value for number, value in level.items() if number != rank)
    usual, series, next_one = median(np.array(others)), finite[rank], max(sign * value for value in others) * sign
    slow, fast = (level[rank], next_one) if sign > 0 else (next_one, level[rank])
    return Slowest(
        rank=rank,
        level=level[rank],
        end=end_level(series.value),
        others=others,
        usual=usual,
        times=slow / fast if fast > 0 else np.inf,
        noise=max(noise(curve.value) for curve in finite.values()),
        step=float(series.step[int(np.argmax(sign * (series.value - (usual + level[rank]) / 2) > 0))]),
    )


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
    part = parted(run)
    if part is not None:
        return Evidence(
            f"grad_norm is the same on all {part.ranks} ranks up to {run.place(part.before)} and differs from "
            f"{run.place(part.step)} on, most on rank {part.rank}",
            steps=(part.step,),
            values={"rank": part.rank, "ranks": part.ranks},
        )
    judged = [(metric, ranks) for metric, ranks in by_metric(run).items() if len(ranks) >= LEAST_RANKS]
    if not judged:
        raise CannotTell(f"times or losses of {LEAST_RANKS} ranks, each under its own name, are not logged")
    found = (_broken(run, *pair) or _astray(run, *pair) for pair in judged)
    return next((evidence for evidence in found if evidence is not None), None) or _slow(run, judged)


def _broken(run: Run, metric: str, ranks: Mapping[int, Series]) -> Evidence | None:
    found = broken(metric, ranks)
    if found is None:
        return None
    later = f"only from {figure(found.next)} on, or not at all" if found.next is not None else "nowhere"
    return Evidence(
        f"{metric} of rank {found.rank} is not finite from {run.place(found.step)} on, that of the other "
        f"{len(ranks) - 1} ranks {later}",
        steps=(found.step,),
        values={"rank": found.rank, "ranks": len(ranks), LOST_ALONE: float(found.next is None)},
    )


def _astray(run: Run, metric: str, ranks: Mapping[int, Series]) -> Evidence | None:
    found = astray(metric, ranks, late=is_late(run, run.first_step, MID_RUN, MID_RUN_STEPS))
    if found is None:
        return None
    where = f"which it leaves from {run.place(found.step)} on"
    return Evidence(
        f"{metric} of rank {found.rank} is about {figure(found.end)} at the end, and about {figure(found.usual)} that "
        f"of the other {len(ranks) - 1} ranks, {'in the whole log' if found.step <= run.first_step else where}",
        steps=(found.step,),
        values={"rank": found.rank, "end": found.end, "others": found.usual, "ranks": len(ranks)},
    )


def _slow(run: Run, judged: Sequence[tuple[str, Mapping[int, Series]]]) -> Evidence | None:
    """Return the slowest rank, by the time that explains most of it: a wait for data before the whole step."""
    found = [evidence for pair in judged if (evidence := _slow_by(run, *pair)) is not None]
    return max(found, key=lambda evidence: evidence.values["times"], default=None)


def _slow_by(run: Run, metric: str, ranks: Mapping[int, Series]) -> Evidence | None:
    found = slowest(metric, ranks)
    if found is None or found.usual <= 0 or found.times < SLOWER:
        return None
    apart = abs(found.level - found.usual)
    step_time = next(run.with_role(Quantity.STEP_TIME, phase="train"), None) if _is_time(metric) else None
    if apart < MIN_RANK_SIGMAS * found.noise:
        return None
    if step_time is not None and len(step_time.finite) and apart < MIN_SHARE_OF_STEP * median(step_time.finite.value):
        return None
    return Evidence(
        f"{metric} of rank {found.rank} is {figure(found.level)} in the median and about {figure(found.end)} at the "
        f"end; the other {len(found.others)} ranks have {figure(min(found.others))} to {figure(max(found.others))}",
        steps=(found.step,),
        values={
            "rank": found.rank,
            "level": found.level,
            "others": found.usual,
            "ranks": len(ranks),
            "times": found.times,
        },
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
