"""Measures of predictions."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.loops.industry.trace import Row


def auc(scores: Tensor, labels: Tensor) -> float:
    """Return the area under the ROC curve, ties counted half."""
    labels = labels.flatten() > 0.5
    ordered, at = torch.unique(scores.flatten().double().nan_to_num(), return_inverse=True)
    count = torch.bincount(at, minlength=len(ordered)).double()
    rank = count.cumsum(0) - (count - 1) / 2
    good, bad = float(labels.sum()), float((~labels).sum())
    return (float(rank[at][labels].sum()) - good * (good + 1) / 2) / max(1.0, good * bad)


def detection(scores: Tensor, labels: Tensor, threshold: float = 0.5) -> Row:
    """Return accuracy, precision, recall and F1 of the rare class."""
    said, true = scores.flatten() > threshold, labels.flatten() > 0.5
    hit = float((said & true).sum())
    precision, recall = hit / max(1.0, float(said.sum())), hit / max(1.0, float(true.sum()))
    f1 = 2 * precision * recall / max(1e-9, precision + recall)
    right = float((said == true).float().mean())
    return {"val_acc": right, "val_precision": precision, "val_recall": recall, "val_f1": f1}


def accuracy(logits: Tensor, labels: Tensor) -> Row:
    """Return the accuracy."""
    return {"val_acc": float((logits.argmax(-1) == labels).float().mean())}
