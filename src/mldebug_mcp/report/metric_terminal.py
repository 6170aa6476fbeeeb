"""Values of curves for a person: a small picture of each, and the numbers in columns."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from rich.console import Console
from rich.text import Text

from mldebug_mcp.logs.run import Floats
from mldebug_mcp.models.metric import MetricReading, MetricValues
from mldebug_mcp.report.scale import Scale, scale_of
from mldebug_mcp.text import figure, shorten

ROWS = 6
_BARS = " ▁▂▃▄▅▆▇█"
_NOT_FINITE = "×"
_LABEL = 10
_LEAST = 0.125
"""Of a row: the lowest value is seen."""


def print_reading(console: Console, reading: MetricReading) -> None:
    """Print each curve as a picture and as numbers."""
    for one in reading.series:
        role = f" = {one.metric}" if one.metric != one.name else ""
        heading = f"{one.name}{role}: {one.records} records, {reading.step_name}s {figure(one.points[0][0])} to "
        console.print(Text(shorten(f"{heading}{figure(one.points[-1][0])}", 400), style="bold"))
        if one.course:
            console.print(Text(f"  {one.course}"))
        for line in picture(one, max(8, console.width - _LABEL - 4)):
            console.print(Text(line, style="cyan"), no_wrap=True, crop=True)
        for line in _columns(one, console.width):
            console.print(Text(line), no_wrap=True, crop=True)
    if reading.others:
        console.print(Text(f"also logged: {', '.join(shorten(one, 40) for one in reading.others)}", style="dim"))


def picture(values: MetricValues, width: int) -> list[str]:
    """Return a curve as rows of bars, with the scale at the left; × stands where a value is not finite."""
    value = np.array([one for _, one in values.points], dtype=np.float64)
    finite = value[np.isfinite(value)]
    if len(finite) < 2:
        return []
    scale = scale_of([finite])
    count = min(width, len(value))
    groups = [value[first:last] for first, last in pairwise(np.linspace(0, len(value), count + 1).astype(int))]
    heights = [_height(group, scale) for group in groups]
    rows = []
    for row in range(ROWS - 1, -1, -1):
        cells = "".join(_NOT_FINITE if one is None else _BARS[int(np.clip(8 * (one - row), 0, 8))] for one in heights)
        label = {ROWS - 1: figure(float(finite.max())), 0: figure(float(finite.min()))}.get(row, "")
        rows.append(f"  {label:>{_LABEL}} {cells}")
    return rows


def _height(group: Floats, scale: Scale) -> float | None:
    """Return how many rows the highest value of a group fills; None where one is not finite."""
    if not np.isfinite(group).all():
        return None
    return float(np.clip(scale.share(group.max(keepdims=True))[0], 0.0, 1.0)) * (ROWS - _LEAST) + _LEAST


def _columns(values: MetricValues, width: int) -> list[str]:
    cells = [f"{figure(step)}: {figure(value)}" for step, value in values.points]
    wide = max(map(len, cells)) + 2
    each = max(1, (width - 2) // wide)
    rows = -(-len(cells) // each)
    return ["  " + "".join(f"{one:<{wide}}" for one in cells[row::rows]).rstrip() for row in range(rows)]
