"""What a recorder found when it looked into a model, look by look, in words and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.measure.unknown import CannotTell
from mldebug_mcp.text import counted, figure

KEPT = "gradients_kept"
"""As a recording names the least norm of gradients before a backward pass since the last update."""
MOSTLY = 0.8
"""Share of the looks. Chosen: the first one has nothing to keep, a path that skips a step may keep some."""
LEAST = 3
"""Looks. Chosen: at the first one nothing is learnt yet, and one may be odd."""
STALE = 0.5
"""Standard deviations and logarithms of them together. Chosen: statistics that follow are off by 0.2 at most."""
FEW_FEATURES = 4
"""Numbers that the last layer reads. Chosen: fewer than any classifier is made of."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Something that a recorder saw: in one sentence, at which steps, in which numbers."""

    said: str
    steps: tuple[float, ...]
    values: Mapping[str, float]


class Latest(NamedTuple):
    """The metric that is highest in the later half of its looks, its median there, and how many looks there are."""

    layer: str
    level: float
    looks: int


def latest(run: Run, beginning: str) -> Latest:
    """Return the highest level of the metrics whose names begin so, over the later half of their looks.

    Raises:
        CannotTell: none has as many looks.
    """
    looks = [run[name].finite for name in run.series if name.startswith(beginning)]
    enough = [one for one in looks if len(one) >= LEAST]
    if not enough:
        raise CannotTell(f"{beginning.rstrip('/')} is not recorded {LEAST} times")
    levels = [Latest(one.name.removeprefix(beginning), median(one.value[len(one) // 2 :]), len(one)) for one in enough]
    return max(levels, key=lambda one: one.level)


def stale_statistics(run: Run) -> Seen | None:
    """Return that the running statistics of a normalisation stay far from those of the batches."""
    name, off, looks = latest(run, "statistics_apart/")
    if off < STALE:
        return None
    said = f"{name} has running statistics {figure(off)} deviations off those of the batches, at {looks} looks"
    return Seen(said, (), {"off": off, "looks": looks})


def gradients_kept(run: Run) -> Seen | None:
    """Return that gradients are never cleared between two updates."""
    if KEPT not in run or len(run[KEPT].finite) < LEAST:
        raise CannotTell("no recorder looked whether gradients are cleared")
    looks = run[KEPT].finite
    kept = looks.value > 0
    if kept.mean() < MOSTLY:
        return None
    first = int(kept.argmax())
    said = (
        f"gradients are not zero before the backward pass, at {int(kept.sum())} of {counted(len(kept), 'look')}: from "
        f"earlier updates a norm of {figure(float(looks.value[first]))} is left at "
        f"{run.place(float(looks.step[first]))}, and {figure(float(looks.value[-1]))} at the end"
    )
    return Seen(said, (float(looks.step[first]),), {"looks": len(kept), "kept": float(kept.sum())})


def few_features(run: Run) -> Seen | None:
    """Return that the last layer reads hardly any numbers, and fewer than there are classes."""
    features, classes = run.setting("features"), run.facts.classes or run.facts.tokens
    if features is None or classes is None:
        raise CannotTell("no recorder saw what the last layer reads")
    if features > FEW_FEATURES or features >= classes:
        return None
    said = f"the last layer reads {counted(int(features), 'number')} for {figure(classes)} classes"
    return Seen(said, (), {"features": features, "classes": classes})
