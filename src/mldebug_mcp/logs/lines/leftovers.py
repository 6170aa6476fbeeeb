"""Lines that may be records: metrics without a counter, or a counter beside names that nobody knows.

They count only if the log has nothing better. Of such lines the shape that comes most often is read.
"""

from __future__ import annotations

from collections.abc import Mapping

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import canonical

Shape = tuple[str, ...]

MAX_SHAPES = 1000
"""Shapes of lines that are kept."""
SURE = 2000
"""Lines of one shape in a log without a single sure record, from which on they are its records."""
REPEATED = 3
"""Lines of one shape that make it a record; chosen: two may be chance."""


class Leftovers:
    """Keeps such lines by shape.

    Args:
        builder: Where they go if nothing better comes.
    """

    def __init__(self, builder: RunBuilder) -> None:
        self._builder = builder
        self._rows: dict[Shape, list[tuple[float, ...]]] = {}
        self._known: dict[Shape, bool] = {}
        self._accepted: Shape | None = None
        self.left_out = 0

    def take(self, values: dict[str, float], *, known: bool) -> None:
        """Take a line; `known` says that its names are those of metrics."""
        shape = tuple(values)
        if shape == self._accepted:
            self._builder.numbers(values)
            return
        if self._leaves_out(shape):
            self.left_out += known
            return
        rows = self._rows.setdefault(shape, [])
        self._known.setdefault(shape, known)
        rows.append(tuple(values.values()))
        if len(rows) >= SURE:
            self._accept(shape)

    def many(self, columns: Mapping[str, Floats]) -> None:
        """Take lines of one shape, of names that are those of metrics; each column of shape (n,)."""
        shape, size = tuple(columns), len(next(iter(columns.values())))
        rows = zip(*(column[:SURE].tolist() for column in columns.values()), strict=True)
        done = 0
        while shape != self._accepted and done < size:
            if self._leaves_out(shape):
                self.left_out += size - done
                return
            self.take(dict(zip(shape, next(rows), strict=True)), known=True)
            done += 1
        self._builder.columns({name: column[done:] for name, column in columns.items()}, {})

    def _leaves_out(self, shape: Shape) -> bool:
        """Say whether lines of a shape count no more: there are better ones, or too many shapes."""
        return self._builder.records > 0 or (shape not in self._rows and len(self._rows) >= MAX_SHAPES)

    def end(self) -> None:
        """Give the best shape to the builder if it has no records, else count the lines as left out."""
        if self._builder.records:
            self.left_out += sum(len(rows) for shape, rows in self._rows.items() if self._known[shape])
        else:
            shape = self._best()
            if shape is not None:
                self._accept(shape)
        if self.left_out:
            self._builder.note(f"left out {self.left_out} line(s) with metrics but without a step or an epoch")

    def _best(self) -> Shape | None:
        """Return the shape that repeats most; a line that stands alone counts only if it names the loss."""
        counts = {shape: len(rows) for shape, rows in self._rows.items()}
        repeated = {shape: count for shape, count in counts.items() if count >= REPEATED}
        if repeated:
            return max(repeated, key=lambda shape: repeated[shape])
        return next((shape for shape in counts if self._known[shape] and "loss" in map(canonical, shape)), None)

    def _accept(self, shape: Shape) -> None:
        self._accepted = shape
        for row in self._rows.pop(shape):
            self._builder.numbers(dict(zip(shape, row, strict=True)))
        if not self._known[shape]:
            names = ", ".join(shape[:5])
            self._builder.note(
                f"names of no known metric: lines with a counter that repeat are read as records ({names})"
            )
