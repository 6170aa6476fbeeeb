"""The probe's own tiny models for a bare batch: a transformer for token ids, a perceptron for everything else."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from .batches import crop, with_labels
from .failure import KnownFailure
from .report import Report
from .subject import Subject

WIDTH, HEADS, LAYERS = 64, 4, 2
MAX_ROWS, MAX_POSITIONS = 16, 128
MAX_LOGITS = 8_000_000
"""Rows x positions x vocabulary above which the vocabulary is cut to the ids that occur: steps would take seconds."""


class TinyTransformer(nn.Module):
    """A causal pre-norm transformer; with `per_row`, it gives one prediction for each row instead of each position."""

    def __init__(self, vocabulary: int, positions: int, outputs: int, *, per_row: bool) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, WIDTH)
        self.positions = nn.Embedding(positions, WIDTH)
        block = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, LAYERS, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, outputs, bias=False)
        self.per_row = per_row
        for table in (self.tokens, self.positions):
            nn.init.normal_(table.weight, std=0.02)
        nn.init.normal_(self.head.weight, std=0.02)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Take ids (rows, positions), give logits (rows, positions, outputs) or (rows, outputs)."""
        length = input_ids.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool, device=input_ids.device).triu(1)
        hidden = self.tokens(input_ids) + self.positions.weight[:length]
        hidden = self.norm(self.blocks(hidden, mask=None if self.per_row else mask))
        return self.head(hidden.mean(1) if self.per_row else hidden)  # type: ignore[no-any-return]


def tiny_subject(batch: dict[str, torch.Tensor], report: Report) -> Subject:
    """Return the tiny model that fits a batch, with the loss that its labels ask for.

    Raises:
        KnownFailure: the batch lacks inputs or labels.
    """
    if not batch:
        raise KnownFailure("batch", "the batch is empty; give input_ids and labels, or float inputs and labels")
    batch = with_labels(batch, report)
    if "labels" not in batch or len(batch) < 2:
        raise KnownFailure("batch", f"the batch has {', '.join(batch)}; the probe needs inputs and labels")
    return _of_tokens(batch, report) if "input_ids" in batch else _of_values(batch, report)


def _of_tokens(batch: dict[str, torch.Tensor], report: Report) -> Subject:
    whole = batch["input_ids"].shape
    batch = crop(batch, MAX_ROWS, MAX_POSITIONS)
    ids, labels = batch["input_ids"].long(), batch["labels"]
    if ids.shape != whole:
        report.note(f"{ids.shape[0]} of {whole[0]} rows are probed, {ids.shape[1]} of {whole[1]} positions each")
    per_row = labels.shape != ids.shape
    if bool((ids < 0).any()):
        raise KnownFailure(
            "batch", f"input_ids holds {int(ids.min())}; ids must not be negative (is -100 in the inputs?)"
        )
    highest = int(max(ids.max(), 0 if per_row else labels.max())) + 1
    if ids.numel() * highest > MAX_LOGITS:
        ids, labels, count = _renumbered(ids, labels, per_row=per_row)
        report.note(f"the ids that occur were renumbered, so the vocabulary is {count} and not {highest}")
        highest = count
    outputs = int(labels.max()) + 1 if per_row else highest
    model = TinyTransformer(highest, ids.shape[1], max(2, outputs), per_row=per_row)
    if per_row:
        return Subject(
            model, {"input_ids": ids, "labels": labels.reshape(-1).long()}, _row_loss, ours=True, causal=False
        )
    return Subject(model, {"input_ids": ids, "labels": labels.long()}, _next_token_loss, ours=True, causal=True)


def _renumbered(ids: torch.Tensor, labels: torch.Tensor, *, per_row: bool) -> tuple[torch.Tensor, torch.Tensor, int]:
    known = torch.unique(ids if per_row else torch.cat((ids.flatten(), labels[labels >= 0].flatten().long())))
    ids = torch.searchsorted(known, ids)
    if not per_row:
        labels = torch.where(labels >= 0, torch.searchsorted(known, labels.long().clamp(min=0)), labels)
    return ids, labels, len(known)


def _of_values(batch: dict[str, torch.Tensor], report: Report) -> Subject:
    name = next(name for name in batch if name != "labels")
    inputs, labels = batch[name][:64].float(), batch["labels"][:64]
    if len(batch[name]) > 64:
        report.note(f"64 rows are probed, of {len(batch[name])}")
    if len(inputs) != len(labels):
        raise KnownFailure("batch", f"{name} has {len(inputs)} rows and labels {len(labels)}; they must be as many")
    flat = inputs[0].numel()
    values = labels.is_floating_point()
    outputs = labels[0].numel() if values else max(2, int(labels.max()) + 1)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(flat, 128), nn.GELU(), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, outputs)
    )
    if values:
        return Subject(model, (inputs, labels.float().reshape(len(labels), -1)), _squared_error, ours=True)
    return Subject(model, (inputs, labels.long().reshape(-1)), _class_loss, ours=True)


def _next_token_loss(model: nn.Module, batch: Any) -> torch.Tensor:
    logits = model(batch["input_ids"])[:, :-1]
    return functional.cross_entropy(logits.flatten(0, 1), batch["labels"][:, 1:].flatten())


def _row_loss(model: nn.Module, batch: Any) -> torch.Tensor:
    return functional.cross_entropy(model(batch["input_ids"]), batch["labels"])


def _class_loss(model: nn.Module, batch: Any) -> torch.Tensor:
    return functional.cross_entropy(model(batch[0]), batch[1])


def _squared_error(model: nn.Module, batch: Any) -> torch.Tensor:
    return functional.mse_loss(model(batch[0]), batch[1])
