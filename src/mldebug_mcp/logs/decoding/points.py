"""Single points, as TensorBoard, MLflow and Trackio keep them, → records.

These stores hold each metric by itself. Points of one step become one record. A restart shows where the step of a
metric falls while time goes on. Evaluations that count epochs beside a training that counts steps are placed by the
clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import canonical
from mldebug_mcp.text import shorten

BEHIND = 2.0
"""Times: so far is training ahead of a metric that counts epochs beside it, at each of them. Chosen by hand: the clock
puts a metric of the same counter within a few steps of it."""


@dataclass(frozen=True, slots=True)
class Points:
    """What a store holds of one metric; all of shape (n,), in any order.

    Args:
        time: When each was logged; the unit does not matter, the order does.
        step: Steps.
        value: Values.
    """

    time: Floats
    step: Floats
    value: Floats

    def __len__(self) -> int:
        return len(self.step)


def add_points(builder: RunBuilder, metrics: Mapping[str, Points]) -> None:
    """Put metrics into the builder, one part for each stretch between restarts."""
    ordered = {name: _in_time(points) for name, points in metrics.items() if len(points)}
    unstepped = [name for name, points in ordered.items() if len(points) > 1 and not points.step.any()]
    if unstepped:
        builder.note(f"{len(unstepped)} metric(s) were logged without a step: their points are counted")
        for name in unstepped:
            points = ordered[name]
            ordered[name] = Points(points.time, np.arange(1.0, len(points) + 1), points.value)
    starts = _restarts(list(ordered.values()))
    for first, last in pairwise([-np.inf, *starts, np.inf]):
        part = {name: _between(points, first, last) for name, points in ordered.items()}
        _add_part(builder, _on_one_axis(builder, {name: points for name, points in part.items() if len(points)}))


def _in_time(points: Points) -> Points:
    order = np.argsort(points.time, kind="stable")
    return Points(points.time[order], points.step[order], points.value[order])


def _between(points: Points, first: float, last: float) -> Points:
    inside = slice(*np.searchsorted(points.time, [first, last], side="left"))
    return Points(points.time[inside], points.step[inside], points.value[inside])


def _restarts(metrics: list[Points]) -> list[float]:
    """Return the times at which the step of a metric falls. Metrics that fall one after another fall together."""
    falls = []
    for points in metrics:
        at = np.flatnonzero((np.diff(points.step) < 0) & (np.diff(points.time) > 0)) + 1
        falls += list(zip(points.time[at].tolist(), points.time[at - 1].tolist(), strict=True))
    restarts: list[float] = []
    for time, before in sorted(falls):
        if not restarts or before >= restarts[-1]:
            restarts.append(time)
    return restarts


def _on_one_axis(builder: RunBuilder, metrics: Mapping[str, Points]) -> Mapping[str, Points]:
    """Place metrics that count 0, 1, 2 ... by themselves at the training step that was logged before them.

    A usual loop writes its training loss with a step and its evaluation with the epoch.
    """
    if not metrics:
        return metrics
    training = [name for name in metrics if canonical(name) == "loss"]
    leading = max((metrics[name] for name in training or metrics), key=len)
    placed: dict[str, Points] = {}
    for name, points in metrics.items():
        reached = np.searchsorted(leading.time, points.time, side="right") - 1
        steps = leading.step[np.maximum(reached, 0)]
        counts = len(points) > 1 and points.step[0] in (0, 1) and bool(np.all(np.diff(points.step) == 1))
        if counts and bool(np.all(np.diff(steps) > 0)) and bool(np.all(steps[1:] >= BEHIND * points.step[1:])):
            placed[name] = Points(points.time, steps, points.value)
    if placed:
        builder.note(
            f"{len(placed)} metric(s) count epochs where training counts steps ({shorten(', '.join(placed), 80)}): "
            "each point is placed at the training step logged before it, by the clock"
        )
    return {**metrics, **placed}


def _add_part(builder: RunBuilder, metrics: Mapping[str, Points]) -> None:
    if not metrics:
        return
    builder.new_part()
    steps = np.unique(np.concatenate([points.step for points in metrics.values()]))
    values: dict[str, Floats] = {}
    logged: dict[str, NDArray[np.bool_]] = {}
    for name, points in metrics.items():
        row = np.searchsorted(steps, points.step)
        values[name] = np.zeros(len(steps))
        values[name][row] = points.value  # of several points at one step the last one stands
        logged[name] = np.zeros(len(steps), dtype=np.bool_)
        logged[name][row] = True
    builder.columns({"step": steps, **values}, logged)
