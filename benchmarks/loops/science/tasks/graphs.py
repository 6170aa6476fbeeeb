"""Graphs: a property of small molecules, and what users like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.science.task import Rows, Task, Terms, bug

ATOMS = 5


class MessagePassing(nn.Module):
    """Rounds of messages along bonds, summed over atoms."""

    def __init__(self, hidden: int, rounds: int, *, residual: bool, norm: bool) -> None:
        super().__init__()
        self.embed = nn.Linear(ATOMS, hidden)
        self.rounds = nn.ModuleList(nn.Linear(2 * hidden, hidden) for _ in range(rounds))
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) if norm else nn.Identity() for _ in range(rounds))
        self.head = nn.Linear(hidden, 1)
        self.residual = residual

    def forward(self, atoms: Tensor, bonds: Tensor) -> Tensor:
        """Return one value a graph."""
        state = self.embed(atoms)
        for layer, norm in zip(self.rounds, self.norms, strict=True):
            new = functional.relu(norm(layer(torch.cat([state, bonds @ state], 2))))
            state = state + new if self.residual else new
        value: Tensor = self.head(state.mean(1))[:, 0]
        return value


@dataclass
class Molecule(Task):
    """Random molecules of twelve atoms; the property counts weighted atoms, bonds between kinds, and rings of three."""

    name: ClassVar[str] = "molecule_property"
    rows: int = 512
    hidden: int = 32
    rounds: int = 3
    residual: bool = True
    layer_norm: bool = True
    target_mean: float = 0.0
    wrong_column: bool = bug(default=False)

    def setup(self, seed: int) -> None:
        """Draw the molecules and the model."""
        torch.manual_seed(seed)
        self.model = MessagePassing(self.hidden, self.rounds, residual=self.residual, norm=self.layer_norm)
        self.data, self.held = self._rows(self.rows), self._rows(256)

    def _rows(self, count: int) -> Rows:
        kinds = torch.randint(0, ATOMS, (count, 12))
        atoms = functional.one_hot(kinds, ATOMS).float()
        upper = (torch.rand(count, 12, 12) < 0.2).float().triu(1)
        bonds = upper + upper.transpose(1, 2)
        weights = torch.tensor([0.1, -0.4, 0.8, 0.3, -0.2])
        mixed = (bonds * (kinds[:, :, None] != kinds[:, None, :])).sum((1, 2))
        y = (atoms @ weights).sum(1) + 0.15 * mixed
        y = (y - 4.5) / 1.9 + self.target_mean
        if self.wrong_column:
            y = torch.randn(count)
        return {"x": atoms, "bonds": bonds, "y": y}

    def loss(self, rows: Rows) -> tuple[Tensor, Terms]:
        """Return the absolute error, as the field trains."""
        return (self.model(rows["x"], rows["bonds"]) - rows["y"]).abs().mean(), {}

    def measure(self, rows: Rows) -> dict[str, float]:
        """Add the correlation with the truth."""
        guess = self.model(rows["x"], rows["bonds"]).float()
        return super().measure(rows) | {"pearson_r": float(torch.corrcoef(torch.stack([guess, rows["y"]]))[0, 1])}


class Factors(nn.Module):
    """Vectors of users and items, and a bias of items."""

    def __init__(self, users: int, items: int, width: int) -> None:
        super().__init__()
        self.users, self.items, self.bias = (
            nn.Embedding(users, width),
            nn.Embedding(items, width),
            nn.Embedding(items, 1),
        )
        for table in (self.users, self.items, self.bias):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, user: Tensor, item: Tensor) -> Tensor:
        """Return the score of each pair."""
        score: Tensor = (self.users(user) * self.items(item)).sum(-1) + self.bias(item)[..., 0]
        return score


@dataclass
class Recommender(Task):
    """Clicks of 150 users on 120 items, ranked pairwise (BPR) against items that were not clicked."""

    name: ClassVar[str] = "recommender_bpr"
    users: int = 150
    items: int = 120
    factors: int = 16
    clicks_per_user: int = 16
    reg: float = 1e-4
    swapped: bool = bug(default=False)
    random_clicks: bool = bug(default=False)
    negative_is_positive: bool = bug(default=False)
    wrong_index: bool = bug(default=False)

    def setup(self, seed: int) -> None:
        """Draw tastes, clicks and the model."""
        torch.manual_seed(seed)
        self.model = Factors(self.users, self.items, self.factors)
        taste = torch.randn(self.users, 4) @ torch.randn(4, self.items) + torch.randn(self.items)
        if self.random_clicks:
            taste = torch.zeros_like(taste)
        ranked = (taste + torch.randn_like(taste) * 0.7).argsort(1, descending=True)[:, : self.clicks_per_user + 4]
        ranked = ranked.gather(1, torch.rand(ranked.shape).argsort(1))
        self.seen = torch.zeros(self.users, self.items).scatter_(1, ranked[:, 4:], 1.0).bool()
        self.data, self.held = self._pairs(ranked[:, 4:]), self._pairs(ranked[:, :4])

    def _pairs(self, chosen: Tensor) -> Rows:
        user = torch.arange(self.users)[:, None].expand_as(chosen)
        return {"user": user.reshape(-1), "item": chosen.reshape(-1)}

    def loss(self, rows: Rows) -> tuple[Tensor, Terms]:
        """Return BPR's loss against a random item, and the weights' penalty."""
        other = torch.randint(0, self.items, rows["item"].shape)
        other = rows["item"] if self.negative_is_positive else other
        margin = self.model(rows["user"], rows["item"]) - self.model(rows["user"], other)
        penalty = self.reg * sum(parameter.square().sum() for parameter in self.model.parameters())
        return -functional.logsigmoid(-margin if self.swapped else margin).mean() + penalty, {}

    def measure(self, rows: Rows) -> dict[str, float]:
        """Add AUC over pairs, and recall and NDCG among the first ten items not clicked in training."""
        scores = self.model(torch.arange(self.users)[:, None], torch.arange(self.items)[None, :])
        own = scores[rows["user"], rows["item"]]
        area = (own[:, None] > scores[rows["user"]]).float().mean()
        free = scores.masked_fill(self.seen, -torch.inf) if rows is self.held else scores
        place = (free[rows["user"]] > own[:, None]).sum(1).float() + (self.items if self.wrong_index else 0)
        hit = (place < 10).float()
        ndcg = (hit / (place + 2).log2()).mean()
        return super().measure(rows) | {"auc": float(area), "recall@10": float(hit.mean()), "ndcg@10": float(ndcg)}
