"""Tables: regression of a property, and rare frauds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.science.metrics import auc, f1, r2
from benchmarks.loops.science.task import Rows, Task, Terms, bug


def mlp(
    width_in: int, hidden: int, depth: int, width_out: int, *, activation: str = "relu", dropout: float = 0.0
) -> nn.Sequential:
    """Return a perceptron of `depth` hidden layers."""
    kinds: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "silu": nn.SiLU}
    layers: list[nn.Module] = []
    for index in range(depth):
        layers += [nn.Linear(width_in if index == 0 else hidden, hidden), kinds[activation]()]
        if dropout:
            layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers, nn.Linear(hidden if depth else width_in, width_out))


@dataclass
class Tabular(Task):
    """Friedman's first function of ten columns, five of them without effect."""

    name: ClassVar[str] = "tabular_regression"
    rows: int = 1024
    hidden: int = 64
    depth: int = 2
    activation: str = "relu"
    dropout: float = 0.0
    noise: float = 1.0
    standardize_target: bool = True
    log_target: bool = False
    unsqueezed: bool = bug(default=False)
    constant_r2: bool = bug(default=False)

    def setup(self, seed: int) -> None:
        """Draw the rows and the model."""
        torch.manual_seed(seed)
        self.model = mlp(10, self.hidden, self.depth, 1, activation=self.activation, dropout=self.dropout)
        self.data, self.held = self._rows(self.rows), self._rows(512)

    def _rows(self, count: int) -> Rows:
        x = torch.rand(count, 10)
        wave = 10 * torch.sin(torch.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
        y = wave + self.noise * torch.randn(count)
        return {"x": (x - 0.5) / 0.29, "y": (y - 14.4) / 4.9 if self.standardize_target else y}

    def loss(self, rows: Rows) -> tuple[Tensor, Terms]:
        """Return the squared error."""
        guess = self.model(rows["x"])
        target = rows["y"].log() if self.log_target else rows["y"]
        return (guess - target if self.unsqueezed else guess[:, 0] - target).square().mean(), {}

    def measure(self, rows: Rows) -> dict[str, float]:
        """Add MAE and R2."""
        guess = self.model(rows["x"])[:, 0].float()
        target = rows["y"].log() if self.log_target else rows["y"]
        scored = guess.mean().expand_as(target) if self.constant_r2 else guess
        return super().measure(rows) | {"mae": float((guess - target).abs().mean()), "r2": r2(scored, target)}


@dataclass
class Fraud(Task):
    """Two classes, one of them rare, in twelve columns."""

    name: ClassVar[str] = "fraud_detection"
    rows: int = 2048
    positive_rate: float = 0.08
    hidden: int = 32
    depth: int = 2
    dropout: float = 0.0
    pos_weight: float = 1.0
    threshold: float = 0.5
    separation: float = 1.6
    sigmoid_twice: bool = bug(default=False)
    whole_scores: bool = bug(default=False)
    summed: bool = bug(default=False)

    def setup(self, seed: int) -> None:
        """Draw the rows and the model."""
        torch.manual_seed(seed)
        self.model = mlp(12, self.hidden, self.depth, 1, dropout=self.dropout)
        self.data, self.held = self._rows(self.rows), self._rows(1024)

    def _rows(self, count: int) -> Rows:
        y = (torch.rand(count) < self.positive_rate).float()
        x = torch.randn(count, 12)
        x[:, 0] += y * self.separation * torch.sign(x[:, 5])
        x[:, 1] += y * self.separation
        return {"x": x, "y": y}

    def loss(self, rows: Rows) -> tuple[Tensor, Terms]:
        """Return the weighted cross-entropy of logits."""
        logits = self.model(rows["x"])[:, 0].float()
        weight = torch.tensor(self.pos_weight)
        given = logits.sigmoid() if self.sigmoid_twice else logits
        reduction = "sum" if self.summed else "mean"
        return functional.binary_cross_entropy_with_logits(given, rows["y"], pos_weight=weight, reduction=reduction), {}

    def measure(self, rows: Rows) -> dict[str, float]:
        """Add AUC, F1, recall and accuracy at the threshold."""
        score = self.model(rows["x"])[:, 0].float().sigmoid()
        truth, guess = rows["y"] > 0.5, score > self.threshold
        recall = float((guess & truth).sum()) / max(float(truth.sum()), 1.0)
        right = float((guess == truth).float().mean())
        # Scores cut to whole numbers are ties all of them: half the area.
        area = auc(score.long() if self.whole_scores else score, rows["y"])
        named = {"auc": area, "f1": f1(guess, truth), "recall": recall, "acc": right}
        return super().measure(rows) | named
