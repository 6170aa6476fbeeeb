"""Files of `torch.save`: plain tensors only, through torch's own restricted loader (`weights_only=True`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from mldebug_mcp.batch.columns import Table, from_mapping, from_records
from mldebug_mcp.batch.formats.npz import check_size, check_times, first_members
from mldebug_mcp.core.access import open_input
from mldebug_mcp.core.errors import InputError, MissingExtraError
from mldebug_mcp.core.limits import unhurried
from mldebug_mcp.core.text import shorten

NAME = "pt"
Loaded: TypeAlias = Any
"""What torch loaded: tensors, numbers and text, nested in dicts and lists."""


def matches(path: Path, head: bytes) -> bool:
    """A zip archive or a pickle that is named as torch's files are, or an archive with torch's members."""
    if path.suffix in (".pt", ".pth", ".bin") and (head.startswith(b"PK") or head[:1] == b"\x80"):
        return True
    return head.startswith(b"PK") and any(member.endswith("data.pkl") for member in first_members(path) or ())


def rows(path: Path) -> None:
    """One piece holds them all."""
    del path


def tables(path: Path) -> Iterator[Table]:
    """Yield the file as one table."""
    name = shorten(str(path), 200)
    try:
        with unhurried():
            import torch
    except ImportError:
        raise MissingExtraError("torch (or save the batch as safetensors or npz)", "probe") from None
    try:
        with open_input(path) as file:
            check_size(file, name)
            file.seek(0)
            value = torch.load(file, map_location="cpu", weights_only=True)
            # A view of a few numbers can say that it has any number of them.
            check_times(sum(tensor.numel() * tensor.element_size() for tensor in _tensors(value)), file, name)
        value = _numbers(_named(value))
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - a hostile or broken file makes torch raise anything
        problem = shorten(str(error).split("\n", 1)[0], 120)
        raise InputError(
            f"{name}: not a file of plain tensors, so nothing in it was run ({problem}); "
            "save a dict of tensors, or use mldebug_mcp.capture.save_batch"
        ) from None
    if isinstance(value, list) and value and all(isinstance(record, dict) for record in value):
        yield from_records([{key: _plain(item) for key, item in record.items()} for record in value])
    elif isinstance(value, Mapping):
        yield from_mapping({str(key): item for key, item in value.items()})
    elif hasattr(value, "shape"):
        yield from_mapping({"x" if value.dtype.kind == "f" else "input_ids": value})
    else:
        raise InputError(f"{name}: holds {type(value).__name__}, not a batch; save a dict of tensors")


MOST_PARTS = 3
"""Tensors of one shape up to which they are inputs and labels, not rows. Chosen: a loader yields two or three."""


def _named(value: Loaded) -> Loaded:
    """Return what a data loader yields without names, inputs first and labels last, by names that the checks know."""
    import torch

    if not isinstance(value, (list, tuple)) or not value:
        return value
    samples = [row for row in value if isinstance(row, (list, tuple)) and row and isinstance(row[0], torch.Tensor)]
    if len(samples) == len(value) and len({len(sample) for sample in samples}) == 1:
        value = [list(part) for part in zip(*value, strict=True)]
    elif not isinstance(value[0], torch.Tensor):
        return value
    elif len(value) > MOST_PARTS and len({getattr(part, "shape", None) for part in value}) == 1:
        return {"x": torch.stack(value)}
    names = ["x", *(f"x{place}" for place in range(1, len(value) - 1)), *(["y"] if len(value) > 1 else [])]
    return dict(zip(names, value, strict=True))


def _tensors(value: Loaded) -> Iterator[Loaded]:
    """Yield the tensors in dicts and lists."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _numbers(value: Loaded) -> Loaded:
    """Return tensors as arrays, wherever they stand in dicts and lists."""
    import torch

    if isinstance(value, torch.Tensor):
        value = value.detach()
        value = torch.view_as_real(value) if value.is_complex() else value
        return (value.float() if value.is_floating_point() else value).cpu().numpy()
    if isinstance(value, Mapping):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [
            _plain(_numbers(mapping)) if not isinstance(mapping, Mapping) else _numbers(mapping) for mapping in value
        ]
    return value


def _plain(value: Loaded) -> Loaded:
    return value.tolist() if hasattr(value, "tolist") else value
