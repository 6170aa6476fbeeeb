"""Class labels outside the number of classes."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.ragged import Ints
from mldebug_mcp.batch.sequences import IGNORE
from mldebug_mcp.symptoms.batch.registry import (
    NO_ROWS,
    BatchEvidence,
    batch_check,
)

VOID = (255, -1)
"""Pixels that belong to no class. Source: the label images of Pascal VOC, Cityscapes and ADE20K, and SegFormer, for
255."""


LEAST_MASKS = 2
LEAST_WHITE = 0.02
"""Share of pixels at 255 from which on they are a class. Chosen: a void margin alone is thinner."""


@batch_check(
    severity="error",
    why="The loss is indexed out of bounds: a device-side assert on a GPU, often reported at another line.",
    fix=(
        "Labels run from 0 to num_labels - 1; set num_labels, id2label and label2id when loading the model, and "
        "-100 for none."
    ),
    quotes=("hfcourse_walk_pipeline",),
    purposes=("classification", "vlm"),
)
def label_out_of_range(batch: Batch) -> BatchEvidence | None:
    """A class label is negative (but not the ignore index) or at least the number of classes.

    Not this when: the number of classes is not known and no label is negative; the classes have names; 255 or -1 mark
    pixels without a class, unless there is nothing but 0 and 255.
    """
    classes = batch.model.num_labels
    limit = classes if classes is not None and classes > 1 else 2**62
    if _is_black_and_white(batch):
        limit = min(limit, 2)
    seen, rows, example = 0, NO_ROWS, 0
    for labels, numbers in _labels(batch):
        wrong = np.flatnonzero(((labels < 0) | (labels >= limit)) & (labels != IGNORE))
        if len(wrong):
            seen, example = seen + len(wrong), int(labels[wrong[0]])
            rows = np.union1d(rows, numbers[wrong])
    if not seen:
        return None
    known = f"0 to {limit - 1}" if limit < 2**62 else "0 and above"
    said = f"{seen} labels are outside {known} (such as {example})"
    return BatchEvidence(said, rows.astype(np.int64), values={"labels": seen, "example": example})


def _is_black_and_white(batch: Batch) -> bool:
    """Whether 255 is no void but the other of two classes: masks that were saved as images and never divided."""
    pixels = batch.integers.get("labels")
    if pixels is None or len(pixels) < LEAST_MASKS or np.unique(pixels).tolist() != [0, VOID[0]]:
        return False
    return float(np.mean(pixels == VOID[0])) >= LEAST_WHITE


def _labels(batch: Batch) -> list[tuple[Ints, Ints]]:
    found = []
    if batch.classes is not None and not batch.class_names:
        found.append((batch.classes, batch.numbers[: len(batch.classes)]))
    if batch.boxes is not None and len(batch.boxes.classes):
        found.append((batch.boxes.classes, batch.numbers[batch.boxes.rows]))
    if (pixels := batch.integers.get("labels")) is not None:
        used = ~np.isin(pixels, () if _is_black_and_white(batch) else VOID)
        rows = np.broadcast_to(np.arange(len(pixels))[:, None, None], pixels.shape)
        found.append((pixels[used], rows[used]))
    if batch.purpose == "classification":
        found += [
            (side.labels.flat.astype(np.int64), np.repeat(side.numbers, side.ids.lengths))
            for side in batch.sides
            if side.labels is not None
        ]
    return found
