"""Preference pairs: a chosen and a rejected row, and what they share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.sequences import Sequences

Row = npt.NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class Pair:
    """A pair, by place in each side, with the padding left out.

    Args:
        number: The row's number in the file.
        chosen, rejected: Places of the two rows in their sides.
        chosen_start: The first content token of the chosen row, counted with its padding.
        shared: Tokens that both begin with.
        same: Whether both are the same, token for token.
    """

    number: int
    chosen: int
    rejected: int
    chosen_start: int
    shared: int
    same: bool


def content(side: Sequences, index: int) -> Row:
    """Return a row without its padding."""
    start, stop = side.bounds
    return side.ids.flat[start[index] : stop[index]]


def pairs(chosen: Sequences, rejected: Sequences) -> Iterator[Pair]:
    """Yield the pairs whose rows were both read."""
    places = {int(number): place for place, number in enumerate(rejected.numbers)}
    for place, number in enumerate(chosen.numbers.tolist()):
        if number not in places:
            continue
        one, two = content(chosen, place), content(rejected, places[number])
        least = min(len(one), len(two))
        apart = np.flatnonzero(one[:least] != two[:least])
        shared = int(apart[0]) if len(apart) else least
        start = int(chosen.bounds[0][place] - chosen.ids.offsets[place])
        yield Pair(number, place, places[number], start, shared, shared == len(one) == len(two))
