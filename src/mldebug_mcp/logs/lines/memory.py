"""What is known of the lines that were seen: their skeletons, and the shapes that were learnt from them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.lines.box_shapes import BoxShapes
from mldebug_mcp.logs.lines.shapes import Shape
from mldebug_mcp.logs.lines.table_rows import RowShapes

MAX_KEYS = 20_000
"""Skeletons that are remembered."""
MAX_KEY = 4000
"""Bytes of a skeleton that is remembered."""
MAX_SHAPES = 64
"""Shapes of one skeleton, told apart by numbers such as the rank."""
TRIES = 4
"""Lines of a skeleton from which no shape could be learnt, before it is given up."""

FREE_READS = 5000
"""Times that lines may be read to learn shapes from them, beyond as often as there are lines: learning never takes
much longer than reading each line by itself, whatever the text. Chosen by hand."""

Lines = NDArray[np.int64]


@dataclass(slots=True)
class Skeleton:
    """What is known of the lines of one skeleton."""

    seen: int = 0
    tries: int = 0
    shapes: list[Shape] = field(default_factory=list)


@dataclass(slots=True)
class Memory:
    """The skeletons that were seen: the place of each, and by place what is known of it.

    `lines` counts the lines that were taken, `reads` how often lines were read to learn shapes from them.
    """

    places: dict[bytes, int] = field(default_factory=dict)
    known: list[Skeleton] = field(default_factory=lambda: [Skeleton(tries=TRIES)])
    dull: bytearray = field(default_factory=lambda: bytearray(1))
    first: dict[tuple[object, ...], int] = field(default_factory=dict)
    boxes: BoxShapes = field(default_factory=BoxShapes)
    rows: RowShapes = field(default_factory=RowShapes)
    lines: int = 0
    reads: int = 0

    @property
    def may_learn(self) -> bool:
        """Whether learning has cost no more than it may by now: where shapes seldom come again, it does not pay."""
        return self.reads < self.lines + FREE_READS

    def only_shape(self, place: int) -> Shape | None:
        """Return the shape that all lines of a skeleton have, None if there is not one that is sure."""
        shapes = self.known[place].shapes
        return shapes[0] if len(shapes) == 1 and not shapes[0].fixed and not shapes[0].short else None

    def keep(self, key: bytes, numbers: int, shape: Shape) -> None:
        """Remember a shape; a skeleton whose lines say what those of another one say gets the place of that one."""
        skeleton = self.known[self.places[key]]
        place = self.first.setdefault((numbers, *shape.identity), self.places[key])
        if not skeleton.shapes and len(self.known[place].shapes) == 1:
            self.places[key] = place
        skeleton.shapes.append(shape)

    def places_of(self, keys: list[bytes]) -> Lines:
        """Return the place of each line's skeleton, 0 for one that is not remembered, shape (lines,)."""
        if len(self.places) >= MAX_KEYS:
            self._forget()
        known = self.places
        places = [known.get(key, -1) for key in keys]
        if -1 in places:
            places = [self._place(key) if place < 0 else place for key, place in zip(keys, places, strict=True)]
        return np.array(places, dtype=np.int64)

    def _forget(self) -> None:
        """Keep what was learnt alone."""
        kept = {key: self.known[place] for key, place in self.places.items() if self.known[place].shapes}
        self.places, self.known, self.dull, self.first = {}, [self.known[0]], bytearray(1), {}
        self.boxes.forget_places()
        for key, skeleton in kept.items():
            self.known[self._place(key)] = skeleton

    def _place(self, key: bytes) -> int:
        place = self.places.get(key)
        if place is None:
            if len(key) > MAX_KEY or len(self.places) >= MAX_KEYS:
                return 0
            place = self.places[key] = len(self.known)
            self.known.append(Skeleton())
            self.dull.append(0)
            self.boxes.add_place(key)
        return place
