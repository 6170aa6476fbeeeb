"""A training run that was resumed writes on elsewhere: logs that go on where another ends are read as one run.

Lightning makes a new `version_N` at each start, W&B a new offline folder, a Trainer's event files a new `runs/DATE`;
and the newest checkpoint of a run that crashed knows nothing of what came after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mldebug_mcp.logs.run import Run, Segment, Series
from mldebug_mcp.logs.settings import Settings
from mldebug_mcp.text import figure, shorten

RESULTS = ("loss", "reward", "eval_loss")
GAP = 3.0
"""Intervals between records that may lie between the end of a log and the beginning of the one that goes on."""
LATE = 5.0
"""Intervals after the beginning of the first log before which another one that begins may be a run of its own."""
SHARED = 0.5
"""Share of the metrics that a run which goes on elsewhere has in common with its beginning. Chosen."""
LEAST, ALIKE = 3, 1e-3
"""Losses that two logs must share to be of one run, and the relative difference that rounding makes. Chosen."""

Named = tuple[str, Run]


def joined(runs: Sequence[Named]) -> list[Named]:
    """Join runs that go on where another one ends; each stays a segment, under the name of the last.

    Two runs that go on from the same one are branches and stay apart.

    Args:
        runs: What was read, by the path of its folder; only runs in one folder are joined.
    """
    found = list(runs)
    while (pair := _next_pair(found)) is not None:
        first, then = pair
        found[found.index(then)] = (then[0], _concatenated(first, then))
        found.remove(first)
    return found


def goes_further(run: Run, other: Run) -> bool:
    """Say whether another log tells the losses of a run number by number, and more of them."""
    if "loss" not in run or "loss" not in other:
        return False
    here, there = run["loss"].value, other["loss"].value
    if not LEAST <= len(here) < len(there):
        return False
    return bool(np.all(np.isclose(there[: len(here)], here, rtol=ALIKE, atol=0, equal_nan=True)))


def _next_pair(runs: Sequence[Named]) -> tuple[Named, Named] | None:
    late = [then for then in runs if _begins_late(then[1])]
    for then in late:
        before = [first for first in runs if _goes_on(first, then)]
        if len(before) == 1 and sum(_goes_on(before[0], other) for other in late) == 1:
            return before[0], then
    return None


def _begins_late(run: Run) -> bool:
    """Say whether a log begins so late that it may go on with another; most do not, and need no comparison."""
    step = next((run[name].step for name in RESULTS if name in run), np.empty(0))
    return len(step) > 1 and float(step[0]) >= LATE * float(np.median(np.diff(step)))


def _goes_on(first: Named, then: Named) -> bool:
    (here, before), (there, after) = first, then
    if here == there or _folder(here) != _folder(there) or before.formats != after.formats:
        return False
    if before.step_name != after.step_name or before.step_name == "record":
        return False
    names = before.series.keys() | after.series.keys()
    if len(before.series.keys() & after.series.keys()) < SHARED * len(names):
        return False
    shared = [(before[name].step, after[name].step) for name in RESULTS if name in before and name in after]
    if not shared or min(map(len, shared[0])) < 2:
        return False
    begun, again = shared[0]
    interval = float(np.median(np.concatenate([np.diff(begun), np.diff(again)])))
    late, end = begun[0] + LATE * interval, begun[-1] + GAP * interval
    return interval > 0 and bool(late <= again[0] <= end) and bool(again[-1] > begun[-1])


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def _concatenated(first: Named, then: Named) -> Run:
    (here, before), (there, after) = first, then
    series = dict(after.series)
    begins = next(float(after[name].step[0]) for name in RESULTS if name in before and name in after)
    for name, one in before.series.items():
        kept = one.where(one.step < begins)
        more = series.get(name, Series(name, np.empty(0), np.empty(0)))
        series[name] = Series(name, np.append(kept.step, more.step), np.append(kept.value, more.value))
    settings = Settings.merged(after.settings, before.settings)
    note = (
        f"{shorten(there, 80)} goes on at {after.step_name} {figure(begins)}, where {shorten(here, 80)} ends "
        f"at {figure(before.last_step)}: they are read as one run that was resumed"
    )
    return replace(
        after,
        series=series,
        settings=settings,
        segments=(*before.segments, *_from(begins, after.segments)),
        records=before.records + after.records,
        messages=(*before.messages, *after.messages),
        notes=tuple(dict.fromkeys((*before.notes, *after.notes, note))),
    )


def _from(begins: float, segments: Sequence[Segment]) -> list[Segment]:
    """Return the stretches without what stands before the first result: Lightning logs `hp_metric` at step 0 again."""
    first, *others = segments
    series = {name: one.between(begins, np.inf) for name, one in first.series.items()}
    kept = {name: one for name, one in series.items() if len(one)}
    return [replace(first, first_step=max(begins, first.first_step), series=kept), *others]
