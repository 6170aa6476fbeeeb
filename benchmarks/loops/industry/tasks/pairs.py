"""Two towers for queries and products, the rest of the batch as negatives; and a student of a teacher."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.industry.fit import fit
from benchmarks.loops.industry.measure import accuracy
from benchmarks.loops.industry.recipe import Batch, Job, Recipe
from benchmarks.loops.industry.trace import Row, Trace

_WIDTH = 24


class Towers(nn.Module):
    """Two towers and a temperature, learned or fixed."""

    def __init__(self, temperature: float, learned: bool, scaled: bool) -> None:
        super().__init__()
        self.query = nn.Sequential(nn.Linear(_WIDTH, 48), nn.ReLU(), nn.Linear(48, 16))
        self.product = nn.Sequential(nn.Linear(_WIDTH, 48), nn.ReLU(), nn.Linear(48, 16))
        self.sharpness = nn.Parameter(torch.tensor(-math.log(temperature)), requires_grad=learned)
        self.scaled = scaled

    def forward(self, queries: Tensor, products: Tensor) -> tuple[Tensor, Tensor]:
        """Return the embeddings."""
        left, right = self.query(queries), self.product(products)
        return (functional.normalize(left, dim=1), functional.normalize(right, dim=1)) if self.scaled else (left, right)


def _pairs(count: int, seed: int, noise: float) -> Batch:
    world = torch.Generator().manual_seed(4)
    left, right = torch.randn(8, _WIDTH, generator=world), torch.randn(8, _WIDTH, generator=world)
    draw = torch.Generator().manual_seed(seed)
    topic = torch.randn(count, 8, generator=draw)
    queries = torch.tanh(topic @ left) + noise * torch.randn(count, _WIDTH, generator=draw)
    return queries, torch.tanh(topic @ right) + noise * torch.randn(count, _WIDTH, generator=draw)


def retrieval(
    recipe: Recipe,
    *,
    rows: int = 8000,
    noise: float = 0.5,
    temperature: float = 0.1,
    learned: bool = False,
    scaled: bool = True,
    kind: str = "in_batch",
    margin: float = 0.5,
    shuffled: bool = False,
    copies: int = 1,
    wrong_valid: bool = False,
    init: float = 1.0,
) -> Trace:
    """Train two towers."""
    torch.manual_seed(recipe.seed)
    train, valid = _pairs(rows, 91 + recipe.seed, noise), _pairs(256, 83, noise)
    if shuffled:
        train, valid = (train[0], train[1][torch.randperm(rows)]), (valid[0], valid[1][torch.randperm(256)])
    if wrong_valid:
        valid = (valid[0] * 0.2 + 1, valid[1])
    train = tuple(part[: rows // copies].repeat(copies, 1) for part in train)
    model = Towers(temperature, learned, scaled)
    with torch.no_grad():
        for parameter in [*model.query.parameters(), *model.product.parameters()]:
            parameter.mul_(init)

    def loss(towers: nn.Module, batch: Batch) -> Tensor:
        left: Tensor
        right: Tensor
        left, right = towers(*batch)
        if kind == "attract":
            return -(left * right).sum(1).mean()
        if kind == "triplet":
            near, far = (left - right).norm(dim=1), (left - right.roll(1, 0)).norm(dim=1)
            apart: Tensor = (near - far + margin).clamp(min=0)
            return apart.mean()
        sharp = towers.sharpness.exp()  # type: ignore[operator]
        scores = left @ right.T * sharp
        at = torch.arange(len(left))
        return functional.cross_entropy(scores, at)

    def metrics(towers: nn.Module, batch: Batch) -> Row:
        left, right = towers(*batch)
        scores = left @ right.T
        rank = (scores > scores.diagonal()[:, None]).sum(1)
        spread = float(functional.normalize(right, dim=1).std(0).mean())
        row = {"val_recall_at_10": float((rank < 10).float().mean()), "emb_std": spread}
        row["logit_max"] = float((scores * towers.sharpness.exp()).abs().max())  # type: ignore[operator]
        return row

    job = Job(
        model=model,
        train=train,
        valid=valid,
        loss=loss,
        metrics=metrics,
        settings={
            "model": "two_tower",
            "objective": kind,
            "temperature": temperature,
            "learn_temperature": learned,
            "normalize": scaled,
            "margin": margin,
        },
    )
    return fit(job, recipe)


class Student(nn.Module):
    """A classifier, perhaps with a low-rank change of a frozen base."""

    def __init__(self, width: int, rank: int | None) -> None:
        super().__init__()
        self.base = nn.Sequential(nn.Linear(_WIDTH, width), nn.ReLU(), nn.Linear(width, 10))
        self.rank = rank
        if rank is not None:
            self.base.requires_grad_(requires_grad=False)
            self.down = nn.Parameter(torch.randn(_WIDTH, max(rank, 1)) * 0.1)
            self.up = nn.Parameter(torch.zeros(max(rank, 1), width))

    def forward(self, rows: Tensor) -> Tensor:
        """Return logits."""
        if self.rank is None:
            out: Tensor = self.base(rows)
            return out
        hidden = torch.relu(self.base[0](rows) + rows @ self.down @ self.up)
        return self.base[2](hidden)  # type: ignore[no-any-return]


def _teacher(seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    teacher = nn.Sequential(nn.Linear(_WIDTH, 64), nn.Tanh(), nn.Linear(64, 10))
    with torch.no_grad():
        for parameter in teacher.parameters():
            parameter.mul_(4.0)
    return teacher.requires_grad_(requires_grad=False)


def distillation(
    recipe: Recipe,
    *,
    rows: int = 6000,
    width: int = 64,
    rank: int | None = None,
    heat: float = 2.0,
    kind: str = "kl",
    seed: int = 1,
    tuned: bool = False,
    detached: bool = False,
    dropout: float = 0.0,
) -> Trace:
    """Train a student on what a teacher says; with a rank, only adapters of a base that knew another teacher."""
    teacher = _teacher(2)
    torch.manual_seed(recipe.seed)
    student = Student(width, rank)
    draw = torch.Generator().manual_seed(seed)
    train, valid = torch.randn(rows, _WIDTH, generator=draw), torch.randn(1500, _WIDTH, generator=draw)
    said = teacher(train), teacher(valid)
    if tuned:  # the base was trained before, on the task as it was
        base = torch.optim.Adam(student.base.parameters(), lr=3e-3)
        student.base.requires_grad_(requires_grad=True)
        old = _teacher(2)
        with torch.no_grad():
            old[0].weight.add_(1.2 * torch.randn(64, _WIDTH) @ torch.randn(_WIDTH, 2) @ torch.randn(2, _WIDTH) / 5)  # type: ignore[operator]
        for _ in range(400):
            at = torch.randint(0, rows, (128,))
            base.zero_grad()
            functional.cross_entropy(student.base(train[at]), old(train[at]).argmax(1)).backward()  # type: ignore[no-untyped-call]
            base.step()
        student.base.requires_grad_(requires_grad=False)

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        logits = model(functional.dropout(batch[0], dropout, training=model.training))
        if detached:
            logits = logits.detach() + 0 * sum(p.sum() for p in model.parameters() if p.requires_grad)
        if kind == "hard":
            return functional.cross_entropy(logits, batch[1].argmax(1))
        target = (batch[1] / heat).softmax(1)
        if kind == "softmax":
            logits = logits.softmax(1)
        if kind == "swapped":  # probabilities where log-probabilities are meant
            return functional.kl_div((logits / heat).softmax(1), target, reduction="batchmean")
        return functional.kl_div((logits / heat).log_softmax(1), target, reduction="batchmean") * heat**2

    job = Job(
        model=student,
        train=(train, said[0]),
        valid=(valid, said[1]),
        loss=loss,
        metrics=lambda model, batch: accuracy(model(batch[0]), batch[1].argmax(1)),
        settings={
            "student_width": width,
            "adapter_rank": rank,
            "kd_temperature": heat,
            "loss": "cross_entropy" if kind == "hard" else "kl_div",
            "num_classes": 10,
        },
    )
    return fit(job, recipe)
