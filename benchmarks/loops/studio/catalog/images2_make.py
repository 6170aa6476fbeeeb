"""Makers of faulty image runs: evaluation, losses, metrics."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.studio import detection, vision
from benchmarks.loops.studio.catalog.tools import swap
from benchmarks.loops.studio.core import Plan, Record, Values
from benchmarks.loops.studio.loop import Batch, Bench, MetricFn, Twist, go


def two_modes(s: int) -> Record:
    """Running statistics that never catch up; a second evaluation uses those of the batch."""
    bench = vision.classify(s, noise=1.6)
    for m in bench.model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.momentum = 1e-4
            m.running_mean.fill_(2.0)  # type: ignore[union-attr]

    def metrics(model: nn.Module, b: Batch) -> Values:
        out = vision.accuracy(model, b)
        model.train()
        again = vision.accuracy(model, b)
        model.eval()
        return out | {"acc_batchstats": again["acc"]}

    return go(s, swap(bench, metrics=metrics), Plan(epochs=10, lr=2e-3))


def never_eval(s: int) -> Record:
    """Dropout stays on in evaluation; the same checkpoint is evaluated three times."""
    bench = vision.classify(s, noise=1.2, drop=0.85)
    bench.evals = {f"val{i}": bench.evals["val"] for i in "abc"}
    return go(s, bench, Plan(epochs=10, lr=3e-3), Twist(eval_mode=False), dropout=0.85, eval_passes=3)


def stays_eval(s: int) -> Record:
    """After the first evaluation the model is not put back into training mode."""
    bench = vision.classify(s, noise=2.4, drop=0.8, width=16, count=600)
    return go(s, bench, Plan(epochs=16, lr=2e-3, log_every=2, eval_every=8), Twist(back_to_train=False), dropout=0.8)


def doubled(model: nn.Module, b: Batch) -> dict[str, Tensor]:
    """Softmax before a loss that has one."""
    p = model(b[0]).softmax(1)
    out = {"loss": functional.cross_entropy(p, b[1], ignore_index=255)}
    return out | {"acc": (p.argmax(1) == b[1]).float().mean()} if b[1].dim() == 1 else out


def doubled_eval() -> MetricFn:
    """Evaluation with the same error."""

    def run(model: nn.Module, b: Batch) -> Values:
        own = vision.ious if b[1].dim() > 1 else vision.accuracy
        return own(model, b) | {"loss": doubled(model, b)["loss"].item()}

    return run


def dice_up(model: nn.Module, b: Batch) -> dict[str, Tensor]:
    """Minimises the overlap instead of one minus it."""
    p = model(b[0]).softmax(1)[:, 1:]
    y = functional.one_hot(b[1], 3).movedim(3, 1)[:, 1:].float()
    return {"loss": 2 * (p * y).sum() / (p.sum() + y.sum() + 1)}


def minus(model: nn.Module, b: Batch) -> dict[str, Tensor]:
    """The wrong sign."""
    out = vision.cross_entropy(model, b)
    return {"loss": -out["loss"], "acc": out["acc"]}


def masked(s: int) -> Record:
    """Every pixel is void."""
    bench = vision.segment(s)
    return go(
        s,
        swap(bench, data=(bench.data[0], torch.full_like(bench.data[1], 255))),
        Plan(epochs=8, lr=3e-3, batch=32, log_every=4, log_gnorm=True),
    )


def iou_log(model: nn.Module, b: Batch) -> dict[str, Tensor]:
    """Minus the logarithm of the IoU, without a guard."""
    obj, box = model(b[0])
    loss_obj = functional.binary_cross_entropy_with_logits(obj, b[1])
    area = b[2][:, 2:].prod(1)
    iou = detection.overlap(detection.corners(box), detection.corners(b[2]))
    part = functional.l1_loss(box, b[2]) - 0.02 * (iou.clamp(min=1e-3) * (area / area)).log().mean()
    return {"loss": loss_obj + 2 * part, "loss_obj": loss_obj, "loss_iou": part}


def flat_box(s: int) -> Record:
    """One box has no width."""
    bench = detection.detect(s, 600, iou_log)
    box = bench.data[2].clone()
    box[381, 2] = 0.0
    return go(s, swap(bench, data=(*bench.data[:2], box)), Plan(epochs=6, lr=2e-3, batch=32, log_every=3))


def xyxy(model: nn.Module, b: Batch) -> Values:
    """MAP of boxes whose centres and sizes are read as corners."""
    out = detection.detect_metrics(model, b)
    _, box = model(b[0])
    hit = (detection.overlap(box, detection.corners(b[2])) > 0.5).float()
    return out | {"mAP50": hit.mean().item()}


def base_one(model: nn.Module, b: Batch) -> Values:
    """Accuracy against classes that count from one."""
    out = vision.accuracy(model, b)
    return out | {"acc": (model(b[0]).argmax(1) + 1 == b[1]).float().mean().item()}


class Standard(nn.Module):
    """A net whose features are standardised over the rows of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(144, 48), nn.Linear(48, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        h = self.a(x.flatten(1))
        h = (h - h.mean(0)) / (h.std(0, unbiased=False) + 1e-3)
        z: Tensor = self.b(h.relu())
        return z


def mixed(s: int) -> Record:
    """Rows see each other; an evaluation of single rows shows it."""
    bench = vision.classify(s, net=Standard(), noise=1.8)

    def metrics(model: nn.Module, b: Batch) -> Values:
        out = vision.accuracy(model, b)
        single = torch.cat([model(r[None]) for r in b[0][:200]])
        return out | {"acc_bs1": (single.argmax(1) == b[1][:200]).float().mean().item()}

    return go(s, swap(bench, metrics=metrics), Plan(epochs=10, lr=2e-3))


def classify_bgr(s: int) -> Record:
    """Colour channels in another order at evaluation."""
    return go(
        s,
        vision.classify(s, channels=3, noise=1.5, view=lambda x: x.flip(1)),
        Plan(epochs=10, lr=2e-3, log_every=8),
    )


def doubled_bench(s: int, seg: bool) -> Bench:
    """A bench with the doubled softmax in training and evaluation."""
    bench = vision.segment(s, loss=doubled) if seg else vision.classify(s, loss=doubled)
    return swap(bench, metrics=doubled_eval())
