"""Batches of any shape: dicts, tuples, lists and objects of tensors, seen as a flat list of leaves."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch

LABEL_NAMES = ("labels", "label", "targets", "target", "y")

Path = tuple[Any, ...]


def leaves(value: Any, path: Path = ()) -> list[tuple[Path, torch.Tensor]]:
    """Return the tensors in a batch with their paths."""
    if isinstance(value, torch.Tensor):
        return [(path, value)]
    if isinstance(value, Mapping):
        return [leaf for key, item in value.items() for leaf in leaves(item, (*path, key))]
    if isinstance(value, (list, tuple)):
        return [leaf for index, item in enumerate(value) for leaf in leaves(item, (*path, index))]
    return []


def mapped(value: Any, change: Callable[[Path, torch.Tensor], torch.Tensor], path: Path = ()) -> Any:
    """Return a copy of a batch with each tensor replaced by `change(path, tensor)`."""
    if isinstance(value, torch.Tensor):
        return change(path, value)
    if isinstance(value, Mapping):
        items = {key: mapped(item, change, (*path, key)) for key, item in value.items()}
        if type(value) is dict:
            return items
        same = copy.copy(value)  # a BatchEncoding, a TensorDict: keep its type
        for key, item in items.items():
            same[key] = item  # type: ignore[index]
        return same
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(item, change, (*path, index)) for index, item in enumerate(value)))
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(item, change, (*path, index)) for index, item in enumerate(value))
    return value


def labels_path(batch: Any) -> Path | None:
    """Return where the labels of a batch are: under a usual name, or second of a pair; None if unknown."""
    if isinstance(batch, Mapping):
        return next(((name,) for name in LABEL_NAMES if isinstance(batch.get(name), torch.Tensor)), None)
    if isinstance(batch, (list, tuple)) and len(batch) == 2 and isinstance(batch[1], torch.Tensor):
        return (1,)
    return None


def at(batch: Any, path: Path) -> torch.Tensor:
    """Return the tensor at a path."""
    for key in path:
        batch = batch[key]
    assert isinstance(batch, torch.Tensor)
    return batch


def inputs(batch: Any) -> list[tuple[Path, torch.Tensor]]:
    """Return the leaves that are not labels."""
    labels = labels_path(batch)
    return [(path, tensor) for path, tensor in leaves(batch) if path != labels]


def to_device(batch: Any, device: torch.device) -> Any:
    """Return the batch with its tensors on a device."""
    return mapped(batch, lambda _, tensor: tensor.to(device))
