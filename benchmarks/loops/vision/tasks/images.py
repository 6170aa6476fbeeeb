"""Classification, segmentation, box regression and contrastive learning on pictures of shapes."""

import torch
from torch import nn

from benchmarks.loops.vision import data
from benchmarks.loops.vision.config import Config
from benchmarks.loops.vision.task import Batch, Task, accuracy, cross_entropy, first_input
from benchmarks.loops.vision.tasks.layers import block, cnn, mlp


def shapes(config: Config) -> Task:
    """Which of `classes` shapes a picture shows; a CNN, or an MLP where the model has a depth."""
    options = dict(config.data)
    count, held = options.pop("n_train", 960), options.pop("n_val", 256)
    train, val = (data.shapes(n, seed=config.seed + k, **options) for k, n in ((0, count), (1000, held)))
    classes = options.get("classes", 5)
    model = (
        nn.Sequential(nn.Flatten(), mlp(256, classes, **config.model))
        if "depth" in config.model
        else cnn(classes, **config.model)
    )
    return Task(model, [train[0], train[3]], [val[0], val[3]], first_input, cross_entropy, accuracy)


class UNet(nn.Module):
    """One level down, one up, with a skip connection."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.down, self.middle = block(1, width), nn.Sequential(nn.MaxPool2d(2), block(width, 2 * width))
        self.up, self.head = nn.Upsample(scale_factor=2), nn.Sequential(block(3 * width, width), nn.Conv2d(width, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Maps pictures (n, 1, h, w) to logits of the same shape."""
        high = self.down(x)
        output: torch.Tensor = self.head(torch.cat([high, self.up(self.middle(high))], dim=1))
        return output


def dice(logits: torch.Tensor, mask: torch.Tensor, smooth: float = 1.0) -> torch.Tensor:
    """Soft Dice coefficient over each picture (Milletari et al. 2016), averaged."""
    p = logits.sigmoid()
    overlap = 2 * (p * mask).sum((1, 2, 3)) + smooth
    return (overlap / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + smooth)).mean()


def bce_dice(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Binary cross-entropy plus one minus Dice."""
    return nn.functional.binary_cross_entropy_with_logits(logits, batch[-1]) + 1 - dice(logits, batch[-1])


def mask_iou(logits: torch.Tensor, batch: Batch) -> dict[str, float]:
    """Intersection over union of the masks at probability one half."""
    found, mask = logits > 0, batch[-1] > 0.5
    return {"iou": ((found & mask).sum() / (found | mask).sum().clamp(min=1)).item()}


def segmentation(config: Config) -> Task:
    """Which pixels belong to the shape."""
    options = {"noise": 0.8} | config.data
    count = options.pop("n_train", 480)
    train, val = (data.shapes(n, seed=config.seed + k, **options) for k, n in ((0, count), (1000, 128)))
    model = UNet(config.model.get("width", 8))
    return Task(model, [train[0], train[1]], [val[0], val[1]], first_input, bce_dice, mask_iou)


def box_iou(boxes: torch.Tensor, batch: Batch) -> dict[str, float]:
    """Intersection over union of boxes given as centre and half sizes."""
    ours, theirs = boxes, batch[-1]
    low = torch.maximum(ours[:, :2] - ours[:, 2:], theirs[:, :2] - theirs[:, 2:])
    high = torch.minimum(ours[:, :2] + ours[:, 2:], theirs[:, :2] + theirs[:, 2:])
    overlap = (high - low).clamp(min=0).prod(1)
    union = 4 * ours[:, 2:].prod(1) + 4 * theirs[:, 2:].prod(1) - overlap
    return {"iou": (overlap / union.clamp(min=1e-6)).mean().item()}


def smooth_l1(boxes: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Smooth L1 summed over the four numbers of a box, as box heads do."""
    return nn.functional.smooth_l1_loss(boxes, batch[-1], beta=0.1, reduction="none").sum(1).mean()


def boxes(config: Config) -> Task:
    """Where the shape lies: centre and half sizes in units of the picture."""
    options = dict(config.data)
    count = options.pop("n_train", 960)
    train, val = (data.shapes(n, seed=config.seed + k, **options) for k, n in ((0, count), (1000, 256)))
    model = nn.Sequential(cnn(4, **config.model), nn.Sigmoid())
    return Task(model, [train[0], train[2]], [val[0], val[2]], first_input, smooth_l1, box_iou)


def two_views(model: nn.Module, batch: Batch) -> torch.Tensor:
    """Embeddings (2n, d) of two augmentations (mirrored, noisy) of each picture, of unit length."""
    x = batch[0]
    views = torch.cat([x + 0.3 * torch.randn_like(x), x.flip(3) + 0.3 * torch.randn_like(x)])
    return nn.functional.normalize(model(views), dim=1)


def pair_logits(z: torch.Tensor, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Similarities (2n, 2n) over the temperature without self-pairs, and the index of each row's partner."""
    logits = (z @ z.T / temperature).masked_fill(torch.eye(len(z), dtype=torch.bool), float("-inf"))
    half = len(z) // 2
    return logits, torch.arange(len(z)).roll(half)


def contrastive(config: Config) -> Task:
    """SimCLR's NT-Xent loss (Chen et al. 2020) over two views; accuracy is how often the partner is nearest."""
    temperature = config.model.get("temperature", 0.2)
    train, val = (data.shapes(n, seed=config.seed + k, noise=0.2) for k, n in ((0, 768), (1000, 128)))

    def nt_xent(z: torch.Tensor, _batch: Batch) -> torch.Tensor:
        return nn.functional.cross_entropy(*pair_logits(z, temperature))

    def nearest(z: torch.Tensor, _batch: Batch) -> dict[str, float]:
        logits, partner = pair_logits(z, temperature)
        return {"top1": (logits.argmax(1) == partner).float().mean().item()}

    return Task(cnn(16, norm=False), [train[0]], [val[0]], two_views, nt_xent, nearest)
