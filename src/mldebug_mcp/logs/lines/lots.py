"""Records of one kind, many of them: how those of several kinds that take turns become columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.columns import Floats, Rows
from mldebug_mcp.logs.lines.parsed import Parsed


class Lot(NamedTuple):
    """Lines of one shape that are records, or parts of one.

    Args:
        like: One of them; None if they are printed dicts.
        columns: Their counters and metrics by name, each of shape (n,).
        rows: Which record each of them belongs to, ascending, shape (n,).
        regular: They have a training loss.
    """

    like: Parsed | None
    columns: Mapping[str, Floats]
    rows: Rows
    regular: bool = False


def carried(lots: Sequence[Lot], size: int, before: float | None) -> Floats:
    """Return the epoch at each of `size` records, as it was told last, NaN before any, shape (size,).

    Args:
        lots: The records.
        size: How many there are.
        before: The epoch that was told before them.
    """
    told = np.full(size, np.nan)
    for lot in lots:
        if "epoch" in lot.columns:
            epochs = lot.columns["epoch"]
            sure = np.ones(len(epochs), dtype=np.bool_) if lot.like is not None else epochs != 0
            told[lot.rows[sure]] = epochs[sure]
    last = np.maximum.accumulate(np.where(np.isnan(told), -1, np.arange(size)))
    epochs = np.append(told, np.nan if before is None else before)[last]  # -1 is the one before
    return np.asarray(epochs)


def with_epochs(lots: Sequence[Lot], epochs: Floats) -> list[Lot]:
    """Return records where lines that name no epoch have that of the lines above them: `epochs`, shape (records,)."""
    told: list[Lot] = []
    for lot in lots:
        here = epochs[lot.rows]
        known = ~np.isnan(here)
        if lot.like is None or "epoch" in lot.columns or not known.any():
            told.append(lot)
        elif known.all():
            told.append(lot._replace(columns={"epoch": here, **lot.columns}))
        else:
            told += [lot, Lot(lot.like, {"epoch": here[known]}, lot.rows[known])]
    return told


def scattered(lots: Sequence[Lot], size: int) -> tuple[dict[str, Floats], dict[str, NDArray[np.bool_]]]:
    """Return the columns of the records, and of each that some records lack, which hold it; all of shape (size,)."""
    values: dict[str, Floats] = {}
    holders: dict[str, list[int]] = {}
    for place, lot in enumerate(lots):
        for name, column in lot.columns.items():
            if name not in values:
                values[name] = np.empty(size)
            values[name][lot.rows] = column
            holders.setdefault(name, []).append(place)
    masks: dict[tuple[int, ...], NDArray[np.bool_]] = {}
    for places in {tuple(places) for places in holders.values()}:
        masks[places] = np.zeros(size, dtype=np.bool_)
        for place in places:
            masks[places][lots[place].rows] = True
    logged = {name: masks[tuple(places)] for name, places in holders.items()}
    return values, {name: mask for name, mask in logged.items() if not mask.all()}
