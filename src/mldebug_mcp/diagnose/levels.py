"""The settings in which the runs of a sweep differ, and the levels of each: its values, or ranges of very many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.models.runs import RunRow
from mldebug_mcp.text import figure

MOST_VALUES = 12
"""Different values of a setting that are levels of their own; more numbers are cut into ranges, and more names, such as
paths, tell nothing. Chosen: a grid has fewer."""
RANGES = 5
"""Ranges, of as many runs each, that the numbers of a random search are cut into. Chosen."""
NOT_ASKED = ("seed", "path", "dir", "name", "run_id", "output", "date", "time", "trial")
"""Words in settings that differ in every run by design."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A run among many: its name as it stands on the disk, its line, and its settings by canonical name."""

    name: str
    row: RunRow
    settings: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Level:
    """A value of a setting, or a range of numbers.

    Args:
        text: How it is shown.
        low: The smallest number in it; None for what is no number.
        high: The largest.
        value: The value, where it is one.
    """

    text: str
    low: float | None = None
    high: float | None = None
    value: Scalar = None

    def holds(self, value: Scalar) -> bool:
        """Say whether a value is of this level."""
        if self.low is None or self.high is None:
            return value == self.value
        return is_number(value) and self.low <= float(value) <= self.high  # type: ignore[arg-type]


def is_number(value: Scalar) -> bool:
    """Say whether a setting is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def levels_of(settings: Sequence[Mapping[str, Scalar]]) -> Iterator[tuple[str, list[Level]]]:
    """Yield each setting that was varied, with its levels in order."""
    for name in sorted({name for one in settings for name in one}):
        given = [one[name] for one in settings if one.get(name) is not None]
        if len(set(given)) > 1 and not any(word in name.lower() for word in NOT_ASKED) and (found := _levels(given)):
            yield name, found


def _levels(given: Sequence[Scalar]) -> list[Level]:
    values = set(given)
    numbers = sorted(float(one) for one in given if is_number(one))  # type: ignore[arg-type]
    if len(values) <= MOST_VALUES:
        named = sorted((one for one in values if not is_number(one)), key=str)
        distinct = sorted(set(numbers))
        return [*(Level(figure(one), one, one) for one in distinct), *(Level(_shown(one), value=one) for one in named)]
    if len(numbers) < len(given):
        return []
    parts = np.array_split(np.array(numbers), RANGES)
    edges = sorted({float(part[0]) for part in parts})
    ends = [*edges[1:], float("inf")]
    inside = [[one for one in numbers if low <= one < high] for low, high in zip(edges, ends, strict=True)]
    return [Level(f"{figure(some[0])} to {figure(some[-1])}", some[0], some[-1]) for some in inside]


def _shown(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
