from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, run_of, state

ZERO = np.zeros(12)


@pytest.mark.parametrize(
    ("boxes", "classes"),
    [
        ("train/box_loss", "train/cls_loss"),
        ("iou_loss", "cls_loss"),
        ("loss_bbox", "loss_cls"),
        ("loss_bbox", "loss_ce"),
    ],
)
def test_a_loss_of_boxes_that_is_zero_throughout_is_present(boxes: str, classes: str) -> None:
    assert state("box_loss_zero", run_of({boxes: ZERO, classes: decay(12)})) is State.PRESENT


def test_batches_without_objects_are_absent() -> None:
    boxes = np.where(np.arange(12) % 3, 0.0, 0.5)
    assert state("box_loss_zero", run_of({"loss_bbox": boxes, "loss_cls": decay(12)})) is State.ABSENT


def test_the_loss_of_evaluation_is_another_matter() -> None:
    run = run_of({"val/box_loss": ZERO, "train/box_loss": decay(12), "train/cls_loss": decay(12)})
    assert state("box_loss_zero", run) is State.ABSENT


def test_a_log_whose_losses_are_all_zero_cannot_tell() -> None:
    assert state("box_loss_zero", run_of({"loss_bbox": ZERO, "loss_cls": ZERO})) is State.UNKNOWN


def test_a_run_without_boxes_cannot_tell() -> None:
    assert state("box_loss_zero", run_of(loss=decay(12))) is State.UNKNOWN
