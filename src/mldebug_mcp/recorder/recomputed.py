"""The mean cross-entropy of what a model returned, beside the loss that a loop made of it.

Told at the steps that are looked into, where the loop shows its batches and they hold labels that are whole numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from mldebug_mcp.recorder.late import Value

if TYPE_CHECKING:
    from torch import Tensor

ONCE, TWICE, SHIFTED = "recomputed/once", "recomputed/twice", "recomputed/shifted"
"""Of the outputs as logits; of their softmax as logits, as where a loss takes it once more; of each position's outputs
with the label of the next one, as language models have it."""
LABELS = ("labels", "label", "targets", "target", "y")
"""Columns that hold labels, the first that a batch has; of a pair the second."""
NO_LABEL = -100
"""What stands where no label counts. Source: the default of torch's cross_entropy."""
MOST_NUMBERS = 1 << 20
"""Numbers of logits that are looked at. Chosen: a millisecond on a core; of more, rows are drawn evenly."""


class Aligned(NamedTuple):
    """Logits of shape (targets, classes), and labels of shape (targets,)."""

    scores: Tensor
    labels: Tensor


def labels_of(batch: Value) -> Value:
    """Return the labels of a batch, None where it has none that are whole numbers."""
    found: Value = None
    if isinstance(batch, Mapping) or hasattr(batch, "items"):
        found = next((batch[name] for name in LABELS if name in batch), None)
    elif isinstance(batch, tuple | list) and len(batch) > 1:
        found = batch[1]
    if not hasattr(found, "is_floating_point") or found.is_floating_point() or found.is_complex():
        return None
    return found


def aligned(logits: Tensor, labels: Tensor) -> Aligned | None:
    """Return logits and labels side by side, classes last or in the second place; None where shapes do not fit."""
    if logits.dim() != labels.dim() + 1:
        return None
    if logits.shape[:-1] == labels.shape:
        return Aligned(logits.flatten(0, -2), labels.flatten())
    if logits.shape[:1] + logits.shape[2:] == labels.shape:
        return Aligned(logits.movedim(1, -1).flatten(0, -2), labels.flatten())
    return None


def recomputed(logits: Tensor | None, labels: Value) -> dict[str, Tensor]:
    """Return the mean cross-entropy of the outputs, by name; nothing where they do not fit the labels."""
    if logits is None or labels is None or not logits.is_floating_point():
        return {}
    labels = labels.to(logits.device, non_blocking=True)  # a loader gives them on the CPU
    both = aligned(logits.detach(), labels)
    if both is None or both.scores.shape[-1] < 2:
        return {}
    found = {ONCE: _cross_entropy(*both), TWICE: _cross_entropy(both.scores.float().softmax(dim=-1), both.labels)}
    if labels.dim() == 2 and logits.shape[:2] == labels.shape and labels.shape[1] > 1:
        found[SHIFTED] = _cross_entropy(logits.detach()[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    return found


def _cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    every = -(-scores.numel() // MOST_NUMBERS)
    scores, labels = scores[::every].float(), labels[::every].long()
    known = (labels >= 0) & (labels < scores.shape[-1])
    wanted = labels.where(known, labels.new_full((), NO_LABEL))
    found: Tensor = sys.modules["torch"].nn.functional.cross_entropy(scores, wanted, ignore_index=NO_LABEL)
    return found
