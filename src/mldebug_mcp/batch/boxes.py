"""Targets of object detectors: one mapping for each image, with its boxes and their classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from mldebug_mcp.batch.ragged import Floats, Ints
from mldebug_mcp.batch.table import Table

_COLUMNS = ("labels", "targets", "target")
LARGEST_SHARE = 1.5
"""Coordinates above this are no shares of the image: a box may reach a little beyond its edge."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """The boxes of a batch.

    Args:
        values: Four numbers for each box, shape (boxes, 4).
        rows: The place of each box's image.
        classes: Each box's class, shape (boxes,); empty where they do not fit.
        as_shares: Whether they are to be centre and size as shares of the image, as for DETR (`class_labels`), and
            not corners in pixels, as torchvision's detectors want them (`labels`).
    """

    values: Floats
    rows: Ints
    classes: Ints
    as_shares: bool

    def wrong(self) -> tuple[str, Ints]:
        """Return what is wrong with boxes, and in which images; empty where nothing is."""
        values = self.values
        if self.as_shares:
            beyond = np.unique(self.rows[(values > LARGEST_SHARE).any(axis=1)])
            return f"boxes reach {np.nanmax(values, initial=0):.4g}, where shares of the image are wanted", beyond
        turned = ~((values[:, 2] > values[:, 0]) & (values[:, 3] > values[:, 1]))
        return f"{int(turned.sum())} boxes have no width or height between their corners", np.unique(self.rows[turned])


def boxes_of(table: Table) -> Boxes | None:
    """Return the boxes of the targets, or None where no column holds any that can be read."""
    for name in _COLUMNS:
        column = table.columns.get(name)
        if isinstance(column, list) and column and all(isinstance(one, Mapping) and "boxes" in one for one in column):
            found = list(_each([one for one in column if isinstance(one, Mapping)]))
            if not found:
                return None
            values, rows, classes = (np.concatenate(parts) for parts in zip(*found, strict=True))
            as_shares = any("class_labels" in one for one in column if isinstance(one, Mapping))
            return Boxes(values, rows, classes if len(classes) == len(values) else classes[:0], as_shares)
    return None


def _each(targets: list[Mapping[str, object]]) -> Iterator[tuple[Floats, Ints, Ints]]:
    """Yield the boxes, their place and their classes, image by image; images without boxes are left out."""
    for place, target in enumerate(targets):
        try:
            boxes = np.asarray(target["boxes"], np.float64).reshape(-1, 4)
            classes = np.asarray(target.get("class_labels", target.get("labels", [])), np.int64).reshape(-1)
        except (TypeError, ValueError, OverflowError):
            continue
        if len(boxes):
            yield boxes, np.full(len(boxes), place), classes
