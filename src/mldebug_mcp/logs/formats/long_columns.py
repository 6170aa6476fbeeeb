"""Long tables: rows of the name of a metric, a step and a value, whatever holds them, → the points of each metric."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.builder import MAX_METRICS, RunBuilder
from mldebug_mcp.logs.documents import Points, add_points

NO_STEP = frozenset({-(2**31), -(2**63)})
"""Steps that stand for none: ClearML writes a single value at the smallest integer."""


class LongTable:
    """Gathers rows in file order."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[list[float], list[float], list[float]]] = {}
        self._count = 0
        self.single: dict[str, float] = {}
        self.left_out = 0

    def add(self, name: str, step: float, value: float) -> None:
        """Take a row. A step that stands for none makes the value a result of the run, and no point of a curve."""
        if step in NO_STEP:
            self.single[name] = value
            return
        if name not in self._rows and len(self._rows) >= MAX_METRICS:
            self.left_out += 1
            return
        times, steps, values = self._rows.setdefault(name, ([], [], []))
        times.append(self._count)
        steps.append(step)
        values.append(value)
        self._count += 1

    def give(self, builder: RunBuilder) -> None:
        """Put the metrics into the builder, and say what is no curve."""
        points = {
            name: Points(*(np.array(axis, dtype=np.float64) for axis in axes)) for name, axes in self._rows.items()
        }
        add_points(builder, points)
        if self.single:
            shown = ", ".join(list(self.single)[:5])
            builder.note(f"{len(self.single)} value(s) were logged without a step and are no curve: {shown}")
        if self.left_out:
            builder.note(f"left out {self.left_out:,} row(s) of more than {MAX_METRICS} metrics")
