"""A small detection head."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.studio import data
from benchmarks.loops.studio.core import Values
from benchmarks.loops.studio.loop import Batch, Bench, LossFn


class Detector(nn.Module):
    """A backbone with a head of objectness (4x4) and a head of one box."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 12, 3, 2, 1),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.Conv2d(12, 24, 3, 2, 1),
            nn.BatchNorm2d(24),
            nn.ReLU(),
        )
        self.obj = nn.Conv2d(24, 1, 3, 1, 1)
        self.box = nn.Linear(24 * 16, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of objectness and boxes."""
        h = self.body(x)
        return self.obj(h)[:, 0], self.box(h.flatten(1)).sigmoid()


def corners(box: Tensor) -> Tensor:
    """Corners x0, y0, x1, y1 of boxes given as cx, cy, w, h."""
    return torch.cat([box[:, :2] - box[:, 2:] / 2, box[:, :2] + box[:, 2:] / 2], 1)


def overlap(a: Tensor, b: Tensor) -> Tensor:
    """IoU of boxes given by their corners."""
    lo, hi = torch.maximum(a[:, :2], b[:, :2]), torch.minimum(a[:, 2:], b[:, 2:])
    inter = (hi - lo).clamp(min=0).prod(1)
    area = (a[:, 2:] - a[:, :2]).prod(1) + (b[:, 2:] - b[:, :2]).prod(1)
    return inter / (area - inter)


def detect_loss(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """Objectness and an IoU loss of the box, where there is an object."""
    obj, box = model(batch[0])
    has = batch[1].flatten(1).sum(1) > 0
    loss_obj = functional.binary_cross_entropy_with_logits(obj, batch[1])
    part = functional.l1_loss(box[has], batch[2][has]) if bool(has.any()) else obj.sum() * 0
    return {"loss": loss_obj + 2 * part, "loss_obj": loss_obj, "loss_bbox": part}


def detect_metrics(model: nn.Module, batch: Batch) -> Values:
    """AP-like share of boxes with IoU above a half, recall of cells, and the loss."""
    losses = detect_loss(model, batch)
    obj, box = model(batch[0])
    hit = (overlap(corners(box), corners(batch[2])) > 0.5).float()
    conf = obj.flatten(1).max(1).values.sigmoid()
    cell = (obj.flatten(1).argmax(1) == batch[1].flatten(1).argmax(1)).float()
    fired = (conf > 0.3).float()
    return {
        "loss": losses["loss"].item(),
        "mAP50": (hit * cell * fired).mean().item(),
        "recall": (cell * fired).mean().item(),
    }


def detect(seed: int, count: int = 600, loss: LossFn = detect_loss) -> Bench:
    """One square an image."""
    torch.manual_seed(seed)
    return Bench(
        Detector(),
        data.boxes(count, seed),
        {"val": data.boxes(200, seed + 5000)},
        loss,
        detect_metrics,
        {"model": "gridnet-s", "dataset": "squares", "imgsz": 16},
    )
