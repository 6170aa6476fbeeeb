"""Columns and the step of each record → one series per metric, over the whole run and in each of its segments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np

from mldebug_mcp.logs.columns import Column, Columns, Floats, Rows, ascends
from mldebug_mcp.logs.names import COUNTERS
from mldebug_mcp.logs.run import Segment, Series

_CLOCK = re.compile(r"_runtime$|_per_second$|^elapsed$|^timestamp$|^_step$")
_SAID = 3
"""Metrics of which the notes say that values of theirs are left out."""


class SeriesOfRun:
    """Makes the series of a run.

    Args:
        columns: The metrics under their canonical names, without the counter that is the step.
        step: Step of every record, shape (records,).
        starts: Records at which segments start, the first one first.
    """

    def __init__(self, columns: Columns, step: Floats, starts: list[int]) -> None:
        self._columns = columns
        self._step = step
        self._starts = starts
        self._shared_steps: dict[tuple[range, ...], Floats] = {}
        self._contradicted: dict[str, int] = {}

    def whole(self) -> dict[str, Series]:
        """Return each metric over the whole run. After a resume, what was logged again replaces what it repeats."""
        series: dict[str, Series] = {}
        for name, column in self._columns.items():
            series[name], self._contradicted[name] = _sorted(self._without_repeated(name, column))
        return series

    def remark(self, note: Callable[[str], None]) -> None:
        """Say in the notes which values others contradict."""
        told = {name: count for name, count in self._contradicted.items() if count and not _counts(name)}
        for name, count in sorted(told.items(), key=lambda item: (-item[1], item[0]))[:_SAID]:
            note(
                f"{name}: {count} value(s) of steps that were logged again with another value are left out: "
                "the last one stands"
            )

    def segments(self, whole: Mapping[str, Series]) -> tuple[Segment, ...]:
        """Return the segments; `whole` holds the series of the whole run, which are those of its only segment."""
        pieces = self._pieces() if len(self._starts) > 1 else [whole]
        segments = []
        for piece in pieces:
            series = {name: one for name, one in piece.items() if len(one)}
            steps = [edge for one in series.values() for edge in (float(one.step[0]), float(one.step[-1]))]
            if steps:
                segments.append(Segment(min(steps), max(steps), series))
        return tuple(segments)

    def _without_repeated(self, name: str, column: Column) -> Series:
        """Return a metric in the order of its records, without those that a resumed run logged again."""
        steps, value = self._steps_of(column), column.values()
        series = Series(name, steps, value, column.logged_as)
        if len(self._starts) == 1:
            return series
        splits = self._splits(column)
        splits = splits[splits < len(value)]
        # A value stays if its step is below the first ones of all the segments that begin behind it.
        limits = np.append(np.minimum.accumulate(steps[splits][::-1])[::-1], np.inf)
        return series.where(steps < limits[np.searchsorted(splits, np.arange(len(value)), side="right")])

    def _splits(self, column: Column) -> Rows:
        """Return how many values of a metric stand before each segment but the first, shape (segments - 1,)."""
        return np.searchsorted(column.arrays()[0], self._starts[1:])

    def _pieces(self) -> list[dict[str, Series]]:
        pieces: list[dict[str, Series]] = [{} for _ in self._starts]
        for name, column in self._columns.items():
            steps, value = self._steps_of(column), column.values()
            edges = [0, *self._splits(column).tolist(), len(column)]
            for piece, (first, last) in zip(pieces, pairwise(edges), strict=True):
                if first < last:
                    piece[name] = _sorted(Series(name, steps[first:last], value[first:last], column.logged_as))[0]
        return pieces

    def _steps_of(self, column: Column) -> Floats:
        """Return the steps of a metric's values; metrics that stand in the same records share one array."""
        stretches = column.stretches
        if stretches == (range(len(self._step)),):
            return self._step
        if stretches is None:
            return self._step[column.arrays()[0]]
        if stretches not in self._shared_steps:
            parts = [self._step[stretch.start : stretch.stop] for stretch in stretches]
            self._shared_steps[stretches] = np.concatenate([np.empty(0), *parts])
        return self._shared_steps[stretches]


def _counts(name: str) -> bool:
    """Say whether a metric is a clock or a counter: they differ each time that a step is logged."""
    return name in COUNTERS or _CLOCK.search(name) is not None


def _sorted(series: Series) -> tuple[Series, int]:
    """Return the series ascending by step, with the last value of each step, and how many other values were dropped."""
    if ascends(series.step):
        return series, 0
    order = np.argsort(series.step, kind="stable")
    step, value = series.step[order], series.value[order]
    last = np.append(step[1:] != step[:-1], True)
    with np.errstate(over="ignore"):  # the distance between the largest numbers of both signs
        other = (step[1:] == step[:-1]) & ~np.isclose(value[1:], value[:-1], equal_nan=True)
    return replace(series, step=step[last], value=value[last]), int(other.sum())
