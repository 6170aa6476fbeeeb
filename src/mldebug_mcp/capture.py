"""Save a batch from a training script, for `inspect_batch` and `probe_overfit` to read.

    from mldebug_mcp.capture import save_batch
    save_batch(batch, "batch.safetensors", tokenizer=tokenizer)

It uses the standard library and what the script has loaded already: tensors are written by the libraries that made
them, or as plain numbers. None of this package's dependencies is imported.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

Value: TypeAlias = Any
"""Whatever a collator returns: tensors of any library, arrays, lists, numbers, text."""


def save_batch(batch: Value, path: str | Path, tokenizer: Value = None) -> Path:
    """Write a batch as the collator made it; the format follows the file's ending.

    Args:
        batch: A mapping from column names to tensors, arrays or lists, as a data loader yields it; a list of rows; a
            list of inputs and labels without names; or
            anything with `items()`, such as `BatchEncoding`.
        path: `.json` always works. `.pt` needs torch, `.npz` numpy, `.safetensors` safetensors and numpy.
        tokenizer: If given, saved next to it in `<path>.tokenizer`, a folder that `inspect_batch` takes.

    Returns:
        The file written.

    Raises:
        ValueError: the ending is none of these, or its library is not installed.
    """
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    writer = {".json": _write_json, ".pt": _write_torch, ".npz": _write_npz, ".safetensors": _write_safetensors}.get(
        file.suffix
    )
    if writer is None:
        raise ValueError(f"{file.name}: end the name in .json, .pt, .npz or .safetensors")
    writer(_mapping(batch), file)
    if tokenizer is not None:
        tokenizer.save_pretrained(f"{file}.tokenizer")
    return file


def _mapping(batch: Value) -> dict[str, Value]:
    if isinstance(batch, (list, tuple)):
        rows = list(batch)
        if not all(isinstance(row, Mapping) for row in rows):
            between = [f"x{place}" for place in range(1, len(rows) - 1)]
            return dict(zip(["x", *between, "y"], rows, strict=False))
        names = dict.fromkeys(name for row in rows for name in row)
        return {str(name): [row.get(name, None) for row in rows] for name in names}
    items: Iterable[tuple[object, Value]] = batch.items()
    return {str(name): value for name, value in items}


def _listed(value: Value) -> Value:
    """Return tensors and arrays as lists, at any depth."""
    if hasattr(value, "tolist"):
        value = value.detach().cpu() if hasattr(value, "detach") else value
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _listed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_listed(item) for item in value]
    return value


def _write_json(columns: dict[str, Value], file: Path) -> None:
    file.write_text(
        json.dumps({name: _listed(value) for name, value in columns.items()}, default=str), encoding="utf-8"
    )


def _write_torch(columns: dict[str, Value], file: Path) -> None:
    torch = sys.modules.get("torch")
    if torch is None:
        raise ValueError(f"{file.name}: .pt is for scripts that use torch; write .npz or .json")
    plain = {
        name: value.detach().cpu().clone() if isinstance(value, torch.Tensor) else _listed(value)
        for name, value in columns.items()
    }
    torch.save(plain, file)


def _write_npz(columns: dict[str, Value], file: Path) -> None:
    arrays = _arrays(columns, file)
    sys.modules["numpy"].savez(file, **arrays)


def _write_safetensors(columns: dict[str, Value], file: Path) -> None:
    arrays = _arrays(columns, file)
    try:
        from safetensors.numpy import save_file
    except ImportError:
        raise ValueError(f"{file.name}: safetensors is not installed; write .npz or .json") from None
    save_file(arrays, file)


def _arrays(columns: dict[str, Value], file: Path) -> dict[str, Value]:
    """Return the columns that are rectangles of numbers as numpy arrays; bfloat16 becomes float32."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        raise ValueError(f"{file.name}: this format is for scripts that use numpy; write .json")
    arrays, left_out = {}, []
    for name, value in columns.items():
        try:
            array = numpy.asarray(_listed(value) if hasattr(value, "detach") else value)
        except ValueError:
            array = None
        if array is None or array.dtype.kind not in "biuf":
            left_out.append(name)
        else:
            arrays[name] = numpy.ascontiguousarray(array)
    if not arrays:
        raise ValueError(f"{file.name}: no column is a rectangle of numbers; write .json")
    if left_out:
        sys.stderr.write(
            f"mldebug_mcp.capture: left out of {file.name}: {', '.join(left_out)}; .json holds any column\n"
        )
    return arrays
