"""What a model returned in a pass, and the labels that belong to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from .subject import Subject, at, inputs, labels_path, leaves

IGNORED_LABEL = -100
"""The label that cross-entropy skips: torch's default, which the Hugging Face stack uses."""


@dataclass
class Targets:
    """Predictions and what they should be, row by row: `tokens`, `classes` (one per row), `binary` or `values`.

    Logits of tokens have rows, positions and classes; of classes rows and classes; of others the shape of the labels.
    """

    kind: str
    logits: torch.Tensor
    labels: torch.Tensor

    @property
    def classes(self) -> int:
        """How many there are to choose from."""
        return self.logits.shape[-1] if self.kind in ("tokens", "classes") else 2


class Capture:
    """Keeps the last output of the model while it is entered."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self.output: Any = None
        self.given: list[torch.Tensor] = []
        self.in_training_mode: bool | None = None

    def __enter__(self) -> Capture:
        self._handle = self._model.register_forward_hook(self._keep, with_kwargs=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._handle.remove()

    def _keep(self, module: nn.Module, arguments: Any, keywords: Any, output: Any) -> None:
        self.given = [tensor for _, tensor in leaves((list(arguments), dict(keywords)))]
        self.in_training_mode = module.training
        self.output = output

    def tensor(self) -> torch.Tensor | None:
        """Return the main tensor of the output, detached: logits where it names them."""
        return main_tensor(self.output)


def main_tensor(output: Any) -> torch.Tensor | None:
    """Return the logits, or the first floating tensor with rows, of a model's output."""
    if isinstance(output, torch.Tensor):
        return output.detach() if output.ndim and output.is_floating_point() else None
    for name in ("logits", "prediction_logits", "last_hidden_state"):
        value = output.get(name) if isinstance(output, Mapping) else getattr(output, name, None)
        if isinstance(value, torch.Tensor):
            return value.detach()
    values = output.values() if isinstance(output, Mapping) else output if isinstance(output, (list, tuple)) else ()
    return next((found for value in values if (found := main_tensor(value)) is not None), None)


def targets_of(subject: Subject, logits: torch.Tensor | None) -> Targets | None:
    """Match the model's output with the labels of the batch; None if they do not fit any known form."""
    path = labels_path(subject.batch)
    if path is None and logits is not None and isinstance(subject.batch, torch.Tensor):
        return _next_tokens(logits.float(), subject.batch)
    if path is None or logits is None:
        return None
    labels, logits = at(subject.batch, path).detach(), logits.float()
    if labels.is_floating_point():
        return _values(logits, labels)
    if labels.ndim >= 2 and logits.ndim == 2 and logits.shape[0] == labels.numel():
        logits = logits.reshape(*labels.shape, -1)
    if labels.ndim == 3 and logits.ndim == 4 and logits.shape[2:] == labels.shape[1:]:
        logits, labels = logits.movedim(1, -1).flatten(1, 2), labels.flatten(1)
    if labels.ndim == 2 and labels.shape[1] == 1 and logits.ndim == 2:
        labels = labels[:, 0]
    if labels.ndim == 1 and logits.ndim == 2 and len(labels) == len(logits) and logits.shape[1] > 1:
        return Targets("classes", logits, labels)
    if labels.ndim == 2 and logits.ndim == 3 and logits.shape[:2] == labels.shape:
        return Targets("tokens", logits, labels)
    return None


def _next_tokens(logits: torch.Tensor, ids: torch.Tensor) -> Targets | None:
    """Take token ids, where they are the whole batch, for labels too: the loss takes inputs and labels from them.

    A model that was shown all but the last id gives no output for that; a place is kept for it, which nothing counts.
    """
    if ids.ndim != 2 or ids.is_floating_point() or logits.ndim != 3 or not spans(logits, ids):
        return None
    return Targets("tokens", nn.functional.pad(logits, (0, 0, 0, ids.shape[1] - logits.shape[1])), ids.detach())


def spans(logits: torch.Tensor, ids: torch.Tensor) -> bool:
    """Return whether there is an output for each id of each row, or for each but the last."""
    return len(logits) == len(ids) and ids.shape[1] - logits.shape[1] in (0, 1)


def _values(logits: torch.Tensor, labels: torch.Tensor) -> Targets | None:
    labels = labels.float()
    if logits.shape != labels.shape:
        if logits.numel() != labels.numel():
            return None
        logits = logits.reshape(labels.shape)
    binary = bool(((labels == 0) | (labels == 1)).all())
    return Targets("binary" if binary else "values", logits, labels)


def token_ids(subject: Subject) -> torch.Tensor | None:
    """Return the token ids of the batch (rows, positions), if it has any."""
    for path, tensor in inputs(subject.batch):
        if (
            tensor.ndim == 2
            and tensor.dtype in (torch.int64, torch.int32)
            and (path in ((), (0,)) or str(path[-1]) in ("input_ids", "ids", "tokens", "x", "idx", "inputs", "src"))
        ):
            return tensor
    return None


# What can be said about a batch before any model sees it.


MASKS = ("loss_mask", "completion_mask", "assistant_masks")
"""Columns whose zeros are not trained on: TRL's, and what most own losses call theirs."""


def describe_batch(subject: Subject) -> dict[str, Any]:
    """Return whether the inputs are finite, how many labels are trained, and how labels and ids relate."""
    given = (tensor for _, tensor in inputs(subject.batch) if tensor.is_floating_point())
    found: dict[str, Any] = {"inputs_finite": all(bool(torch.isfinite(tensor).all()) for tensor in given)}
    if (sides := _equal_sides(subject)) is not None:
        found["equal_sides"] = sides
    path = labels_path(subject.batch)
    if path is None:
        masks = _masks(subject)
        return found | ({"trained_labels": 0} if masks and not any(bool(mask.any()) for mask in masks) else {})
    labels = at(subject.batch, path)
    if labels.is_floating_point():
        return found
    ids = token_ids(subject)
    found["trained_labels"] = _trained(subject, labels, ids)
    if ids is not None and ids.shape == labels.shape:
        found["labels_against_ids"] = _relation(ids, labels)
    return found


LIKED, DISLIKED = ("positive", "chosen", "pos"), ("negative", "rejected", "neg")
"""What the names of columns begin with that a loss of preferences or of distances sets against each other."""


def _equal_sides(subject: Subject) -> list[str] | None:
    """Return the columns of a batch's two sides that are equal; empty where they differ, None where there are none."""
    given = [(str(path[-1]), tensor) for path, tensor in leaves(subject.batch) if path and "mask" not in str(path[-1])]
    liked, disliked = ([side for side in given if side[0].startswith(names)] for names in (LIKED, DISLIKED))
    pairs = [(first, second) for first in liked for second in disliked if first[1].shape == second[1].shape]
    if not pairs:
        return [] if liked and disliked else None
    return next(([first[0], second[0]] for first, second in pairs if torch.equal(first[1], second[1])), [])


def _trained(subject: Subject, labels: torch.Tensor, ids: torch.Tensor | None) -> int:
    """Return how many labels are trained on; 0 too where only those are that no next id can be predicted for."""
    trained = labels != IGNORED_LABEL
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
