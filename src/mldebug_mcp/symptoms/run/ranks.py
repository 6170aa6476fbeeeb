"""Is one rank unlike the others, and in what?"""

from __future__ import annotations

from collections.abc import Mapping

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.ranks import astray, broken, by_metric, parted, slowest
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import by_outcome, told, with_attribute
from mldebug_mcp.text import figure

SLOWER = 1.2
"""Times the slowest of the others. Chosen: shares of a batch differ by less."""
SIGMAS = 3.0
"""Times the noise from record to record between a rank and the others. Chosen: a median has less noise than that."""
LEAST_RANKS = 3
"""Ranks. Chosen: of two nobody knows which is unlike."""


def rank_differs(run: Run) -> Evidence | None:
    """A rank parts from the others: it takes longer, has another gradient, or a loss far above or not finite first.

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
    found = (_broken(run, *one) or _astray(run, *one) or _slow(*one) for one in judged)
    return next((one for one in found if one is not None), None)


def _broken(run: Run, metric: str, ranks: Mapping[int, Series]) -> Evidence | None:
    one = broken(metric, ranks)
    if one is None:
        return None
    later = f"only from {figure(one.next)} on, or not at all" if one.next is not None else "nowhere"
    return Evidence(
        f"{metric} of rank {one.rank} is not finite from {run.place(one.step)} on, that of the other "
        f"{len(ranks) - 1} ranks {later}",
        steps=(one.step,),
        values={"rank": one.rank, "ranks": len(ranks)},
    )


def _astray(run: Run, metric: str, ranks: Mapping[int, Series]) -> Evidence | None:
    one = astray(metric, ranks)
    if one is None:
        return None
    return Evidence(
        f"{metric} of rank {one.rank} is {figure(one.end)} at the end, and {figure(one.usual)} that of the other "
        f"{len(ranks) - 1} ranks, which it leaves from {run.place(one.step)} on",
        steps=(one.step,),
        values={"rank": one.rank, "end": one.end, "others": one.usual, "ranks": len(ranks)},
    )


def _slow(metric: str, ranks: Mapping[int, Series]) -> Evidence | None:
    one = slowest(metric, ranks)
    if one is None or one.usual <= 0 or one.level < SLOWER * max(one.others):
        return None
    if one.level - one.usual < SIGMAS * one.noise:
        return None
    return Evidence(
        f"{metric} of rank {one.rank} is {figure(one.level)} in the median and {figure(one.end)} at the end; the "
        f"other {len(one.others)} ranks have {figure(min(one.others))} to {figure(max(one.others))}",
        steps=(one.step,),
        values={"rank": one.rank, "level": one.level, "others": one.usual, "ranks": len(ranks)},
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
    whole_run=True,
)
def ranks(run: Run) -> Answers:
    """Compare the ranks, then ask what they differ in."""
    return with_attribute(told(by_outcome((rank_differs,), run)), "rank_differs", rank_computes_otherwise)
