"""What a recorder found when it looked into a model, look by look, in words and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.measure.unknown import CannotTell
from mldebug_mcp.text import counted, figure

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


def few_features(run: Run) -> Seen | None:
    """Return that the last layer reads hardly any numbers, and fewer than there are classes."""
    features, classes = run.setting("features"), run.facts.classes or run.facts.tokens
    if features is None or classes is None:
        raise CannotTell("no recorder saw what the last layer reads")
    if features > FEW_FEATURES or features >= classes:
        return None
    said = f"the last layer reads {counted(int(features), 'number')} for {figure(classes)} classes"
    return Seen(said, (), {"features": features, "classes": classes})
