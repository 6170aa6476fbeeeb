"""What can be said about a batch before any model sees it."""

from __future__ import annotations

import math
from typing import Any

import torch

from .outputs import IGNORED, token_ids
from .subject import Subject
from .tree import at, inputs, labels_path


def describe_batch(subject: Subject) -> dict[str, Any]:
    """Return whether the inputs are finite, how many labels are trained, and how labels and ids relate."""
    given = (one for _, one in inputs(subject.batch) if one.is_floating_point())
    found: dict[str, Any] = {"inputs_finite": all(bool(torch.isfinite(one).all()) for one in given)}
    path = labels_path(subject.batch)
    if path is None:
        return found
    labels = at(subject.batch, path)
    if labels.is_floating_point():
        return found
    found["trained_labels"] = int((labels != IGNORED).sum())
    ids = token_ids(subject)
    if ids is not None and ids.shape == labels.shape:
        found["labels_against_ids"] = _relation(ids, labels)
    return found


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
