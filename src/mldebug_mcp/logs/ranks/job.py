"""What the ends of all ranks tell together: which failed first, which is behind, which is slow, and what is missing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mldebug_mcp.logs.ranks.scan import RankEnd, rank_end
from mldebug_mcp.progress import checkpoint
from mldebug_mcp.text import counted, figure, shorten

SLOWER = 1.2
"""Times the slowest of the others, as where ranks stand in one log. Chosen: shares of a batch differ by less."""
LEAST_RANKS = 3
"""Ranks from which one can be told to be unlike the rest."""
FEW = 0.05
"""Share of the ranks that may stand out together; more are no exception. Chosen."""
NAMED = 8
"""Ranks that are named."""
READ_WHOLE = 8
"""Ranks of a job whose files are all read as logs, beside the look at their ends: of more, those that tell most."""
_ECHO = re.compile(
    r"NCCL|Watchdog|ProcessGroup|[Cc]onnection (?:closed|reset|refused)|[Bb]roken pipe|by peer|SIGTERM|"
    r"ChildFailedError|[Bb]arrier|TCPStore|timed? ?out|DistBackendError|[Gg]loo|exitcode"
)
"""What ranks say when another one has gone."""


@dataclass(frozen=True, slots=True)
class RanksTold:
    """What the files of a job's ranks tell.

    Args:
        count: Ranks.
        files: Files of all of them.
        failed: Ranks that tell an error.
        first_failed: The rank that failed first, with the file and words of its error; None where none did.
        behind: Ranks that stopped at an earlier step than the others, and what is told of that.
        slow: The rank that takes longer, and what is told of that.
        missing: Numbers that no file has though higher ones do.
        worth_reading: The files that are read as logs of the run.
    """

    count: int
    files: int
    failed: int = 0
    first_failed: RankEnd | None = None
    behind: str = ""
    straggler: str = ""
    slow: str = ""
    missing: tuple[str, ...] = ()
    worth_reading: tuple[Path, ...] = ()

    def lines(self) -> list[str]:
        """Return what stands out, in words."""
        told = [f"{counted(self.count, 'rank')} in {counted(self.files, 'file')} are read as one run"]
        first = self.first_failed
        if first is not None:
            told.append(f"{_called(first)} is the first of {self.failed} to fail: {first.words()}")
        told += [one for one in (self.behind, self.slow) if one]
        if self.missing:
            more = "" if len(self.missing) <= NAMED else f" and {len(self.missing) - NAMED} more"
            told.append(f"no file of rank {', '.join(self.missing[:NAMED])}{more}, though higher ones are there")
        return told


def told_by_ranks(ranks: Mapping[tuple[str, ...], Sequence[Path]]) -> RanksTold:
    """Look at the end of each rank's files once, and say what stands out."""
    ends = []
    for rank, files in sorted(ranks.items(), key=lambda one: tuple(map(int, one[0]))):
        ends.append(rank_end(rank, files))
        checkpoint(f"{len(ends):,} of {len(ranks):,} ranks looked at")
    failed = [one for one in ends if one.error]
    first = min(failed, key=_order(failed), default=None)
    late, said = _behind(ends)
    slow, told = _slow(ends)
    return RanksTold(
        count=len(ends),
        files=sum(map(len, ranks.values())),
        failed=len(failed),
        first_failed=first,
        behind=said,
        straggler=late or slow,
        slow=told,
        missing=_missing(ends),
        worth_reading=_worth_reading(ranks, ends, first),
    )


def _order(failed: Sequence[RankEnd]) -> Callable[[RankEnd], tuple[bool, float, float, tuple[int, ...]]]:
    """Return what sorts failures: real ones before echoes of others, then by time where all tell it, then by step."""
    timed = all(one.error_time is not None for one in failed)

    def order(one: RankEnd) -> tuple[bool, float, float, tuple[int, ...]]:
        when = one.error_time if timed and one.error_time is not None else 0.0
        return is_echo(one.error), when, one.step if one.step is not None else np.inf, tuple(map(int, one.rank))

    return order


def is_echo(error: str) -> bool:
    """Say whether an error is what a rank says when another one has gone."""
    return _ECHO.search(error) is not None


def _behind(ends: Sequence[RankEnd]) -> tuple[str, str]:
    """Return the rank that stopped first where few stopped before the others, and what is told of that."""
    steps = {one.rank: one.step for one in ends if one.step is not None}
    if len(steps) < LEAST_RANKS:
        return "", ""
    usual, _ = Counter(steps.values()).most_common(1)[0]
    late = [one for one in ends if one.step is not None and one.step < usual]
    if not late or len(late) > max(1, FEW * len(steps)):
        return "", ""
    least = min(late, key=lambda one: (one.step, tuple(map(int, one.rank))))
    named = ", ".join(_number(one) for one in late[:NAMED])
    return _number(least), f"rank {named} stopped at step {figure(least.step or 0.0)}, most others at {figure(usual)}"


def _slow(ends: Sequence[RankEnd]) -> tuple[str, str]:
    """Return the rank whose records tell a clearly longer time than those of all others."""
    names = Counter(name for one in ends for name in one.durations)
    for name, count in names.most_common():
        timed = [one for one in ends if name in one.durations]
        if count < max(LEAST_RANKS, len(ends) // 2):
            break
        *_, second, slowest = sorted(timed, key=lambda one: one.durations[name])
        level, others = slowest.durations[name], second.durations[name]
        usual = float(np.median([one.durations[name] for one in timed]))
        if level >= SLOWER * others > 0 and level - others > others - usual:
            return _number(slowest), (
                f"{_called(slowest)} is slow: {shorten(name, 40)} {figure(level)} in its last records, "
                f"{figure(usual)} in the median of all"
            )
    return "", ""


def _missing(ends: Sequence[RankEnd]) -> tuple[str, ...]:
    numbers = {int(one.rank[-1]) for one in ends}
    if any(len(one.rank) > 1 for one in ends) or max(numbers) > 2 * len(numbers):
        return ()
    return tuple(str(one) for one in range(max(numbers)) if one not in numbers and one > 0)


def _worth_reading(
    ranks: Mapping[tuple[str, ...], Sequence[Path]], ends: Sequence[RankEnd], first: RankEnd | None
) -> tuple[Path, ...]:
    """Return the files of the first rank, of the first with a loss, of the one that tells most, and the first error."""
    if len(ends) <= READ_WHOLE:
        return tuple(path for one in ends for path in ranks[one.rank])
    with_loss = [one for one in ends if one.has_loss]
    chosen = [(with_loss or ends)[0], max(ends, key=lambda one: (one.step is not None, one.bytes))]
    paths = [path for one in chosen for path in ranks[one.rank]]
    return tuple(dict.fromkeys([*paths, *([] if first is None else [first.file])]))


def _number(one: RankEnd) -> str:
    return ".".join(one.rank)


def _called(one: RankEnd) -> str:
    return f"rank {_number(one)} ({shorten(one.file.name, 60)})"
