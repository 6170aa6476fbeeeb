"""The job's batch → tensors."""

from __future__ import annotations

from typing import Any

import torch

from .failure import KnownFailure
from .outputs import IGNORED
from .report import Report


def to_batch(columns: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Return the columns as tensors.

    Raises:
        KnownFailure: rows of a column differ in length, or hold something other than numbers.
    """
    batch: dict[str, torch.Tensor] = {}
    for name, values in columns.items():
        try:
            batch[name] = torch.tensor(values)
        except (ValueError, TypeError, RuntimeError) as error:
            message = f"column {name!r} is not a regular array of numbers ({error}); pad the rows to one length"
            raise KnownFailure("batch", message) from None
    return batch


def with_labels(batch: dict[str, torch.Tensor], report: Report) -> dict[str, torch.Tensor]:
    """Return the batch; token ids without labels are their own labels, except where they are padding."""
    ids, mask = batch.get("input_ids"), batch.get("attention_mask")
    if "labels" in batch or ids is None or ids.ndim != 2:
        return batch
    report.note("the batch has no labels: its input_ids, except padding, were taken as labels")
    return {**batch, "labels": ids if mask is None else torch.where(mask.bool(), ids, IGNORED)}


def crop(batch: dict[str, torch.Tensor], rows: int, positions: int) -> dict[str, torch.Tensor]:
    """Return at most this many rows and positions: those where most labels are trained."""
    labels, ids = batch.get("labels"), batch.get("input_ids")
    if labels is None or ids is None or ids.ndim != 2 or (ids.shape[0] <= rows and ids.shape[1] <= positions):
        return {name: one[:rows] for name, one in batch.items()}
    if labels.shape != ids.shape:
        return {name: one[:rows, :positions] if one.shape == ids.shape else one[:rows] for name, one in batch.items()}
    trained = (labels >= 0).sum(1)
    chosen = trained.argsort(descending=True, stable=True)[:rows].sort().values
    start = _busiest(labels[chosen] >= 0, positions)
    window = slice(start, start + positions)
    return {name: one[chosen][:, window] if one.shape == ids.shape else one[chosen] for name, one in batch.items()}


def _busiest(trained: torch.Tensor, positions: int) -> int:
    """Return where a window of this length holds most trained labels."""
    counts = torch.nn.functional.pad(trained.sum(0).cumsum(0), (1, 0))
    if len(counts) <= positions + 1:
        return 0
    return int((counts[positions:] - counts[:-positions]).argmax())
