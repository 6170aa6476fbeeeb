"""Measures of the fields, on plain tensors."""

from __future__ import annotations

import torch
from torch import Tensor


def auc(scores: Tensor, truth: Tensor) -> float:
    """Return the area under the ROC curve by mean ranks (Mann-Whitney U); NaN with one class alone or scores of NaN."""
    ordered = scores.sort().values
    ranks = (torch.searchsorted(ordered, scores) + torch.searchsorted(ordered, scores, right=True) + 1).float() / 2
    positive = truth > 0.5
    up, down = int(positive.sum()), int((~positive).sum())
    if not up or not down or scores.isnan().any():
        return float("nan")
    return float((ranks[positive].sum() - up * (up + 1) / 2) / (up * down))


def f1(guess: Tensor, truth: Tensor) -> float:
    """Return F1 of boolean guesses; 0 without a true positive."""
    hits = float((guess & truth).sum())
    return 2 * hits / max(float(guess.sum() + truth.sum()), 1.0)


def r2(guess: Tensor, truth: Tensor) -> float:
    """Return the coefficient of determination."""
    return float(1 - (guess - truth).square().mean() / truth.var(correction=0))


def edit_distance(a: list[int], b: list[int]) -> int:
    """Return Levenshtein's distance."""
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, right in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (left != right))
    return row[-1]


def neighbours_accuracy(points: Tensor, labels: Tensor) -> float:
    """Return how often a point's nearest neighbour (cosine) has its label."""
    unit = torch.nn.functional.normalize(points, dim=1)
    likeness = unit @ unit.T - 2 * torch.eye(len(unit))
    return float((labels[likeness.argmax(1)] == labels).float().mean())
