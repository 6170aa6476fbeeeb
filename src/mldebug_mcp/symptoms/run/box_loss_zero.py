"""The part of a detector's loss that is of boxes is zero."""

from __future__ import annotations

import re

from mldebug_mcp.logs.names import is_evaluation
from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LEAST = 5
"""Records; a single batch may well hold no object. Chosen by hand."""
_OF_BOXES = re.compile(
    r"(?:.+/)?(?:(?:box|bbox|iou|giou|ciou|dfl|l1|reg)_loss|loss_(?:box|bbox|iou|giou|dfl|box_reg|rpn_bbox|rpn_box_reg))"
)
_BESIDE = re.compile(
    r"(?:.+/)?(?:(?:cls|obj|conf|ce)_loss|loss_(?:cls|obj|objectness|conf|ce|rpn_cls|rpn_loc|classifier))"
)


@symptom(not_for=("grpo", "ppo", "rl", "preference", "pretraining", "sft", "boosting"), background=0.001)
def box_loss_zero(run: Run) -> Evidence | None:
    """A detector's loss of boxes is exactly zero in every record, while that of classes or objects is not.

    It is worked out over the boxes that are matched to labelled objects: without one of those in any batch there is
    nothing to add up. Not this when: single records are zero, as of a batch without objects.
    """
    parts = [name for name in run.series if not is_evaluation(name)]
    boxes = [run[name].finite for name in parts if _OF_BOXES.fullmatch(name.lower())]
    beside = [run[name].finite for name in parts if _BESIDE.fullmatch(name.lower())]
    boxes = [one for one in boxes if len(one) >= LEAST]
    if not boxes or not any(one.value.any() for one in beside):
        raise CannotTell("not logged: losses of a detector's boxes and of its classes or objects, in 5 records")
    if any(one.value.any() for one in boxes):
        return None
    names = ", ".join(one.name for one in boxes[:3])
    first = boxes[0]
    return Evidence(
        f"{names}: 0 in all {len(first)} records from {run.step_name} {figure(float(first.step[0]))} to "
        f"{figure(float(first.step[-1]))}",
        steps=(float(first.step[0]),),
        values={"records": len(first), "parts": len(boxes)},
    )
