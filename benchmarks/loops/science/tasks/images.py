"""Small images: segmentation by Dice, a variational autoencoder, embeddings without labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.science.metrics import neighbours_accuracy
from benchmarks.loops.science.task import Rows, Task, Terms, bug
from benchmarks.loops.science.tasks.tables import mlp

SIDE = 12


@dataclass
class Segmentation(Task):
    """Bright blobs in noise, outlined by a small convolution; Dice and cross-entropy together."""

    name: ClassVar[str] = "lesion_segmentation"
    rows: int = 192
    channels: int = 8
    noise: float = 0.6
    dice_weight: float = 1.0
    batch_norm: bool = True
    dice_not_inverted: bool = bug(default=False)
    dice_of_logits: bool = bug(default=False)

    def setup(self, seed: int) -> None:
        """Draw the images and the model."""
        torch.manual_seed(seed)
        c = self.channels
        norms: list[nn.Module] = [nn.BatchNorm2d(c) if self.batch_norm else nn.Identity() for _ in range(2)]
        first, second = nn.Conv2d(1, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)
        last = nn.Conv2d(c, 1, 3, padding=1)
        self.model = nn.Sequential(first, norms[0], nn.ReLU(), second, norms[1], nn.ReLU(), last)
        self.data, self.held = self._rows(self.rows), self._rows(64)

    def _rows(self, count: int) -> Rows:
        centre, radius = torch.rand(count, 2, 1, 1) * SIDE, 1.5 + 2 * torch.rand(count, 1, 1)
        grid = torch.arange(SIDE).float()
        far = (grid[:, None] - centre[:, 0]) ** 2 + (grid[None, :] - centre[:, 1]) ** 2
        y = (far < radius**2).float()
        return {"x": (y + self.noise * torch.randn_like(y))[:, None], "y": y}

    def loss(self, rows: Rows) -> tuple[Tensor, Terms]:
        """Return cross-entropy and one minus Dice."""
        logits = self.model(rows["x"])[:, 0].float()
        entropy = functional.binary_cross_entropy_with_logits(logits, rows["y"])
        area = logits.sigmoid()
        overlap = (2 * (area * rows["y"]).sum((1, 2)) + 1) / ((area + rows["y"]).sum((1, 2)) + 1)
        dice = overlap.mean() if self.dice_not_inverted else 1 - overlap.mean()
        return entropy + self.dice_weight * dice, {"bce": entropy, "dice_loss": dice}

    def measure(self, rows: Rows) -> dict[str, float]:
        """Add Dice and IoU of the outlines."""
        guess, truth = self.model(rows["x"])[:, 0] > (50.0 if self.dice_of_logits else 0.0), rows["y"] > 0.5
        both, either = float((guess & truth).sum()), float((guess | truth).sum())
        return super().measure(rows) | {"dice": 2 * both / (both + either + 1e-9), "iou": both / (either + 1e-9)}


@dataclass
class Autoencoder(Task):
    """Bars in an eight by eight image, encoded in a few Gaussian numbers."""

    model: nn.Sequential = field(init=False, repr=False)
    name: ClassVar[str] = "vae_bars"
    rows: int = 1024
    hidden: int = 64
    latent: int = 6
    beta: float = 1.0
    anneal_steps: int = 0
    kl_negated: bool = bug(default=False)
    pixel_mean: bool = bug(default=False)
    log_of_output: bool = bug(default=False)
    calls: int = bug(default=0)

    def setup(self, seed: int) -> None:
        """Draw the images and the model."""
        torch.manual_seed(seed)
        encoder, decoder = mlp(64, self.hidden, 2, 2 * self.latent), mlp(self.latent, self.hidden, 2, 64)
        self.model = nn.Sequential(encoder, decoder)
        self.data, self.held = self._rows(self.rows), self._rows(256)

    def _rows(self, count: int) -> Rows:
        rows, columns = torch.rand(count, 8, 1) < 0.2, torch.rand(count, 1, 8) < 0.2
        clean = (rows | columns).float().flatten(1)
        return {"x": (clean + (torch.rand_like(clean) < 0.02).float()).clamp(max=1.0)}

    def loss(self, rows: Rows) -> tuple[Tensor, Terms]:
        """Return the negative evidence bound: reconstruction and KL, in nats an image."""
        mean, spread = self.model[0](rows["x"]).float().chunk(2, 1)
        code = mean + torch.randn_like(mean) * (spread / 2).exp()
        logits = self.model[1](code).float()
        recon = functional.binary_cross_entropy_with_logits(logits, rows["x"], reduction="none").sum(1).mean()
        if self.log_of_output:
            shown = (logits * 4).sigmoid()
            recon = -(rows["x"] * shown.log() + (1 - rows["x"]) * (1 - shown).log()).sum(1).mean()
        kl = 0.5 * (spread.exp() + mean.square() - 1 - spread).sum(1).mean()
        self.calls += self.model.training
        beta = self.beta * min(1.0, self.calls / max(self.anneal_steps, 1)) * (-1 if self.kl_negated else 1)
        return (recon / 64 if self.pixel_mean else recon) + beta * kl, {"recon": recon, "kl": kl}


@dataclass
class Contrastive(Task):
    """Two noisy views of a point are to agree among the batch (InfoNCE), or triplets by margin."""

    name: ClassVar[str] = "contrastive"
    rows: int = 1024
    hidden: int = 64
    embedding: int = 16
    temperature: float = 0.2
    view_noise: float = 0.5
    loss_kind: str = "infonce"
    margin: float = 0.5

    def setup(self, seed: int) -> None:
        """Draw clusters and the model."""
        torch.manual_seed(seed)
        self.model = mlp(20, self.hidden, 2, self.embedding)
        self.centres = torch.randn(40, 20)
        self.data, self.held = self._rows(self.rows), self._rows(256)

    def _rows(self, count: int) -> Rows:
        y = torch.randint(0, 40, (count,))
        return {"x": self.centres[y] + 0.8 * torch.randn(count, 20), "y": y}

    def _view(self, x: Tensor) -> Tensor:
        return functional.normalize(self.model(x + self.view_noise * torch.randn_like(x)).float(), dim=1)

    def loss(self, rows: Rows) -> tuple[Tensor, Terms]:
        """Return the loss of this batch, and how alike the two views are."""
        a, b = self._view(rows["x"]), self._view(rows["x"])
        likeness = a @ b.T
        own = likeness.diagonal()
        if self.loss_kind == "triplet":
            hardest = likeness.masked_fill(torch.eye(len(a)).bool(), -1.0).topk(3, 1).values.mean(1)
            return functional.relu(hardest - own + self.margin).mean(), {
                "pos_sim": own.mean(),
                "neg_sim": hardest.mean(),
            }
        return functional.cross_entropy(likeness / self.temperature, torch.arange(len(a))), {"pos_sim": own.mean()}

    def measure(self, rows: Rows) -> dict[str, float]:
        """Add how often the nearest neighbour is of the same cluster."""
        parts = [self.loss(self.take(rows, part)) for part in torch.arange(self.size(rows)).chunk(4)]
        value = sum(float(loss) for loss, _ in parts) / len(parts)
        return {"loss": value, "knn_acc": neighbours_accuracy(self.model(rows["x"]).float(), rows["y"])}
