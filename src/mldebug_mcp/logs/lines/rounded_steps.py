"""Steps that are printed rounded ("6K") → the exact ones, where the interval between records tells them."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.builder import RunBuilder

_ROUNDED_TO = 1000
"""The unit of "6K": an exact step lies no further from what was printed."""


class RoundedSteps:
    """Keeps the records whose step is rounded.

    Args:
        builder: Holds the records.
    """

    def __init__(self, builder: RunBuilder) -> None:
        self._builder = builder
        self._printed: dict[int, float] = {}

    def take(self, row: int, step: float) -> None:
        """Take note of a rounded step by the index of its record."""
        self._printed[row] = step

    def settle(self) -> None:
        """Give the records their exact steps: by the interval of the exact ones before them, else the mean one."""
        if not self._printed:
            return
        steps = self._builder.column("step")
        exact = [(row, step) for row, step in steps if row not in self._printed]
        if len(exact) >= 2:
            interval = exact[1][1] - exact[0][1]
            base_row, base = exact[-1]
        else:
            span = steps[-1][1] - steps[0][1]
            interval = float(f"{span / max(len(steps) - 1, 1):.1g}")
            base_row, base = steps[0]
        order = {row: index for index, (row, _) in enumerate(steps)}
        restored = {row: base + interval * (order[row] - order[base_row]) for row in sorted(self._printed)}
        if all(abs(restored[row] - printed) <= _ROUNDED_TO for row, printed in self._printed.items()):
            rows = np.array(list(restored), dtype=np.int64)
            self._builder.overwrite("step", rows, np.array(list(restored.values())))
            self._builder.note(
                f"steps are printed rounded ('6K'): counted on by the interval of {interval:g} between the exact ones"
            )
        else:
            self._builder.note("steps are printed rounded ('6K'): several records share one step")
