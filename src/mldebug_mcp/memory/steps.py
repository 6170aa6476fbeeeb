"""Where the steps of a training loop begin in a history: from annotations, else from what repeats."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mldebug_mcp.memory.stacks import Phase, Stacks
from mldebug_mcp.memory.tables import Action, Annotation, Events, Ints

LEAST_STEPS = 3
REGULAR = 0.3
"""Largest relative spread of the distances between repetitions. Chosen on simulated loops: calls once per step vary by
less, calls once per layer by far more, because they stop between forward passes."""
SPAN = 0.5
"""Of the history that the calls must span: building a model repeats too, but only at its beginning."""
FREED = 0.8
"""Of the allocations that must be freed in the history: what only piles up tells no step from a loop that fills a
list."""
MAX_KEYS = 400

_STEP_NAME = re.compile(
    r"ProfilerStep|optimizer\.step|train\w*[ _.]?step|(?:^|[^a-z])(?:step|iteration|iter|batch)(?:[^a-z]|$)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps in a history.

    Args:
        starts: Index of the event with which each step begins; empty where none were found.
        how: What they were found by.
    """

    starts: Ints
    how: str

    def __len__(self) -> int:
        return len(self.starts)

    def of(self, moments: Ints) -> Ints:
        """Return which step each moment lies in; -1 before the first."""
        return np.searchsorted(self.starts, moments, side="right") - 1


def find_steps(events: Events, freed: Ints, stacks: Stacks, annotations: Sequence[Annotation]) -> Steps:
    """Return the steps of a device's history.

    Args:
        events: The history.
        freed: The events that made what was freed later.
        stacks: The stacks that the events point into.
        annotations: Named moments of the device.
    """
    return (
        _annotated(events, annotations)
        or _repeated(events, freed, stacks)
        or Steps(np.empty(0, np.int64), "none found")
    )


def _annotated(events: Events, annotations: Sequence[Annotation]) -> Steps | None:
    groups: dict[str, list[int]] = {}
    for one in annotations:
        name = re.sub(r"[\d#]+", "", one.name).strip()
        if _STEP_NAME.search(one.name):
            groups.setdefault(name, []).append(one.time)
    usable = {name: sorted(times) for name, times in groups.items() if len(times) >= LEAST_STEPS}
    if not usable or not len(events) or not events.time.any():
        return None
    name = next(
        (one for one in usable if one.startswith("ProfilerStep")), min(usable, key=lambda one: len(usable[one]))
    )
    starts = np.unique(np.searchsorted(events.time, usable[name]))
    starts = starts[starts < len(events)]
    return Steps(starts, f"annotations {name!r}") if len(starts) >= LEAST_STEPS else None


def _repeated(events: Events, freed: Ints, stacks: Stacks) -> Steps | None:
    """Find calls that come once per step: those that repeat at regular distances, of which the rarest count.

    Calls of the optimizer come first; those of an evaluation only where nothing else repeats.
    """
    at = np.flatnonzero(events.action == Action.ALLOC)
    if len(at) < LEAST_STEPS:
        return None
    stack = events.stack[at]
    by_stack = bool((stack > 0).mean() > 0.2)
    key = stack if by_stack else events.size[at]
    if by_stack:
        at, key = at[key > 0], key[key > 0]
    found: list[tuple[int, int, int, Ints]] = []
    is_freed = np.zeros(len(events), np.bool_)
    is_freed[freed[freed >= 0]] = True
    names, counts = np.unique(key, return_counts=True)
    order = np.argsort(key, kind="stable")
    groups = np.split(at[order], np.cumsum(counts)[:-1])
    for name, moments in sorted(zip(names.tolist(), groups, strict=True), key=lambda one: len(one[1]))[:MAX_KEYS]:
        if len(moments) < LEAST_STEPS or not _regular(moments, len(events)):
            continue
        if is_freed[moments].mean() < FREED:
            continue
        who = stacks[name] if by_stack else None
        rank = 1
        if who is not None:
            rank = 2 if who.evaluation else 0 if who.phase is Phase.OPTIMIZER else 1
        found.append((rank, len(moments), int(moments[0]), moments))
    if not found:
        return None
    rank, count, _, _ = min(found, key=lambda one: one[:3])
    # Among the calls that come as often, the earliest marks the beginning of the step best.
    starts = min((one for one in found if one[1] == count and one[0] <= max(rank, 1)), key=lambda one: one[2])[3]
    return Steps(starts, "calls that repeat once per step" if by_stack else "sizes that repeat once per step")


def _regular(moments: Ints, count: int) -> bool:
    gaps = np.diff(moments).astype(float)
    return bool(gaps.mean() >= 4 and gaps.std() <= REGULAR * gaps.mean() and gaps.sum() >= SPAN * count)
