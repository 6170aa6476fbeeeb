"""Boxes on another scale, or in another order, than the detector reads them."""

from __future__ import annotations

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.symptoms.batch.registry import BatchEvidence, batch_check, of_rows


@batch_check(
    severity="error",
    why="The matching and the loss compare boxes with predictions on another scale: the model learns no positions.",
    fix="DETR: centre x, centre y, width, height as shares of the image (the image processor makes them of COCO "
    "annotations). torchvision: left, top, right, bottom in pixels, right > left and bottom > top.",
    quotes=("karpathy_recipe_visualize_before_net",),
)
def box_out_of_range(batch: Batch) -> BatchEvidence | None:
    """Boxes beside `class_labels` reach beyond the image, or boxes beside `labels` have no width or height.

    Not this when: a box reaches a little over the image's edge; the columns are those of another library.
    """
    if batch.boxes is None:
        return None
    said, places = batch.boxes.wrong()
    rows = batch.numbers[places]
    return BatchEvidence(f"{said}, in {of_rows(rows, batch.rows)}", rows) if len(rows) else None
