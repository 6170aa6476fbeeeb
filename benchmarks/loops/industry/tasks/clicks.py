"""Ad clicks: hashed categories and a few dense features, log loss, AUC and calibration."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.industry.fit import fit
from benchmarks.loops.industry.measure import auc
from benchmarks.loops.industry.recipe import Batch, Job, Recipe
from benchmarks.loops.industry.trace import Row, Trace

_FIELDS = 6
_DENSE = 4


class Clicker(nn.Module):
    """Embeddings of the fields beside the dense features, and two layers on top."""

    def __init__(self, vocabulary: int, logs: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(_FIELDS * vocabulary, 8)
        nn.init.normal_(self.table.weight, std=0.05)
        self.offset = torch.arange(_FIELDS) * vocabulary
        self.top = nn.Sequential(nn.Linear(_FIELDS * 8 + _DENSE, 48), nn.ReLU(), nn.Linear(48, 1))
        self.logs = logs

    def forward(self, fields: Tensor, dense: Tensor) -> Tensor:
        """Return a logit a row."""
        embedded = self.table(fields + self.offset).flatten(1)
        if self.logs:
            dense = torch.cat([dense[:, :3], dense[:, 3:].exp().log()], 1)
        out: Tensor = self.top(torch.cat([embedded, dense], 1)).squeeze(1)
        return out


def _rows(count: int, vocabulary: int, bias: float, seed: int, strength: float) -> Batch:
    world = torch.Generator().manual_seed(5)
    effect = torch.randn(_FIELDS, vocabulary, generator=world) * strength
    weight = torch.randn(_DENSE, generator=world) * 0.7
    draw = torch.Generator().manual_seed(seed)
    fields = (vocabulary * torch.rand(count, _FIELDS, generator=draw) ** 2.5).long()
    dense = torch.randn(count, _DENSE, generator=draw)
    logit = effect[torch.arange(_FIELDS), fields].sum(1) + dense @ weight + bias
    clicked = (torch.rand(count, generator=draw) < logit.sigmoid()).float()
    return fields, dense, clicked


def _loss(model: nn.Module, batch: Batch) -> Tensor:
    return functional.binary_cross_entropy_with_logits(model(batch[0], batch[1]), batch[2])


def _metrics(model: nn.Module, batch: Batch) -> Row:
    shown = model(batch[0], batch[1]).sigmoid()
    return {"val_auc": auc(shown, batch[2]), "val_calibration": float(shown.mean() / batch[2].mean())}


def _metrics_of_other_rows(model: nn.Module, batch: Batch) -> Row:
    shown = model(batch[0], batch[1]).sigmoid()
    return {"val_auc": auc(shown.roll(1), batch[2]), "val_calibration": float(shown.mean() / batch[2].mean())}


def clicks(
    recipe: Recipe,
    *,
    rows: int = 24000,
    vocabulary: int = 120,
    bias: float = -2.4,
    strength: float = 0.45,
    noise: float = 0.0,
    shuffled: bool = False,
    leak: bool = False,
    valid_scale: float = 1.0,
    bad_step: int | None = None,
    pocket: tuple[int, int] | None = None,
    by: str = "",
    logs: bool = False,
    other_rows: bool = False,
    copies: int = 1,
) -> Trace:
    """Train a click model."""
    torch.manual_seed(recipe.seed)
    train = _rows(rows, vocabulary, bias, 11 + recipe.seed, strength)
    valid = _rows(4000, vocabulary, bias, 99, strength)
    draw = torch.Generator().manual_seed(3)
    if noise:
        flip = torch.rand(rows, generator=draw) < noise
        train = (train[0], train[1], torch.where(flip, 1 - train[2], train[2]))
    if shuffled:
        train = (train[0], train[1], train[2][torch.randperm(rows, generator=draw)])
        valid = (valid[0], valid[1], valid[2][torch.randperm(4000, generator=draw)])
    if leak:
        train, valid = _with_answer(train), _with_answer(valid)
    if logs:
        train[1][rows * 2 // 3, 3] = -torch.inf  # the counter is zero here: the model takes its logarithm
    if copies > 1:
        train = tuple(part[: rows // copies].repeat(copies, *[1] * (part.dim() - 1)) for part in train)
    valid = (valid[0], valid[1] * valid_scale + (valid_scale - 1), valid[2])
    job = Job(
        model=Clicker(vocabulary, logs),
        train=train,
        valid=valid,
        loss=_loss,
        metrics=_metrics_of_other_rows if other_rows else _metrics,
        touch=_touch(bad_step, pocket),
        order=_order(by, train, copies),
        settings={
            "model": "wide_deep",
            "fields": _FIELDS,
            "hash_buckets": vocabulary,
            "embedding_dim": 8,
            "train_rows": rows,
        },
    )
    return fit(job, recipe)


def _with_answer(batch: Batch) -> Batch:
    dense = batch[1].clone()
    dense[:, 2] = batch[2] * 3 + 0.3 * dense[:, 2]
    return batch[0], dense, batch[2]


def _touch(bad_step: int | None, pocket: tuple[int, int] | None) -> Callable[[int, Tensor, Batch], Batch]:
    def touch(step: int, rows: Tensor, batch: Batch) -> Batch:
        fields, dense, clicked = batch
        if step == bad_step:
            return fields, dense * 400, clicked
        if pocket:
            bad = (rows >= pocket[0]) & (rows < pocket[1])
            clicked = torch.where(bad, 1 - clicked, clicked)
        return fields, dense, clicked

    return touch


def _order(by: str, train: Batch, copies: int) -> Callable[[int, torch.Generator], Tensor]:
    count = len(train[0])

    def order(_epoch: int, generator: torch.Generator) -> Tensor:
        if by == "label":
            return torch.argsort(train[2] + 0.5 * torch.rand(count, generator=generator))
        if by == "campaign":
            return torch.argsort(train[0][:, 0].float() + 0.5 * torch.rand(count, generator=generator))
        if by == "file":
            return torch.arange(count)
        single = count // copies
        return torch.cat([torch.randperm(single, generator=generator) + k * single for k in range(copies)])

    return order
