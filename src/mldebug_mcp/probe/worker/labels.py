"""What can be said about a batch before any model sees it."""

from __future__ import annotations

import math
from typing import Any

import torch

from .outputs import IGNORED, token_ids
from .subject import Subject
from .tree import at, inputs, labels_path

MASKS = ("loss_mask", "completion_mask", "assistant_masks")
"""Columns whose zeros are not trained on: TRL's, and what most own losses call theirs."""


def describe_batch(subject: Subject) -> dict[str, Any]:
    """Return whether the inputs are finite, how many labels are trained, and how labels and ids relate."""
    given = (one for _, one in inputs(subject.batch) if one.is_floating_point())
    found: dict[str, Any] = {"inputs_finite": all(bool(torch.isfinite(one).all()) for one in given)}
    path = labels_path(subject.batch)
    if path is None:
        masks = _masks(subject)
        return found | ({"trained_labels": 0} if masks and not any(bool(one.any()) for one in masks) else {})
    labels = at(subject.batch, path)
    if labels.is_floating_point():
        return found
    ids = token_ids(subject)
    found["trained_labels"] = _trained(subject, labels, ids)
    if ids is not None and ids.shape == labels.shape:
        found["labels_against_ids"] = _relation(ids, labels)
    return found


def _trained(subject: Subject, labels: torch.Tensor, ids: torch.Tensor | None) -> int:
    """Return how many labels are trained on; 0 too where only those are that no next id can be predicted for."""
    trained = labels != IGNORED
    for mask in _masks(subject):
        if mask.shape == labels.shape:
            trained &= mask.to(trained.device) != 0
    of_ids = ids is not None and ids.shape == labels.shape and labels.dim() == 2
    return int(trained.sum()) if not of_ids or bool(trained[:, 1:].any()) else 0


def _masks(subject: Subject) -> list[torch.Tensor]:
    return [given for path, given in inputs(subject.batch) if path and path[-1] in MASKS]


def _relation(ids: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """Return which share of the trained labels is the id at the same position, the next, or the one before."""
    shares = {}
    for name, own, other in (
        ("same", labels, ids),
        ("next", labels[:, :-1], ids[:, 1:]),
        ("previous", labels[:, 1:], ids[:, :-1]),
    ):
        trained = own >= 0
        count = int(trained.sum())
        shares[name] = float((own == other)[trained].float().mean()) if count else math.nan
    trained = labels >= 0
    under = ids[trained]
    shares["under_one_id"] = float((under == under.mode().values).float().mean()) if len(under) else math.nan
    return shares
