"""A batch file → columns of rows: JSON, .npz or .safetensors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mldebug_mcp.errors import InputError
from mldebug_mcp.text import shorten

INPUTS = ("input_ids", "pixel_values", "inputs", "x", "features", "images", "input_values", "data")
LABELS = ("labels", "label", "targets", "target", "y")
MASKS = ("attention_mask", "token_type_ids", "position_ids")
MAX_BYTES = 256 * 1024 * 1024
MAX_ROWS = 64


def read_columns(path: str | Path) -> dict[str, Any]:
    """Return the columns that a model takes, as nested lists, with the labels named `labels`.

    Raises:
        InputError: the file cannot be used.
    """
    file = Path(path).expanduser()
    name = shorten(str(file), 200)
    try:
        if file.stat().st_size > MAX_BYTES:
            raise InputError(f"{name}: larger than {MAX_BYTES // 2**20} MiB; one batch is enough for a probe")
        columns = _read(file)
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error}); check the path") from None
    except (ValueError, KeyError) as error:
        raise InputError(f"{name}: no batch that can be read ({shorten(str(error), 120)})") from None
    wanted = {name: values for name, values in columns.items() if name in (*INPUTS, *LABELS, *MASKS)}
    label = next((one for one in LABELS if one in wanted), None)
    if label is not None:
        wanted = {name: values for name, values in wanted.items() if name not in LABELS} | {"labels": wanted[label]}
    if not any(one in wanted for one in INPUTS):
        raise InputError(
            f"{name}: a batch needs one of {', '.join(INPUTS)}; this has {', '.join(columns) or 'nothing'}"
        )
    return {name: values[:MAX_ROWS] for name, values in wanted.items()}


def _read(file: Path) -> dict[str, Any]:
    if file.suffix == ".npz":
        with np.load(file, allow_pickle=False) as arrays:
            return {str(key): arrays[key].tolist() for key in arrays.files}
    if file.suffix == ".safetensors":
        from safetensors.numpy import load_file

        return {key: array.tolist() for key, array in load_file(file).items()}
    text = file.read_text(encoding="utf-8")
    document = (
        [json.loads(line) for line in text.splitlines() if line.strip()]
        if file.suffix == ".jsonl"
        else json.loads(text)
    )
    if isinstance(document, Mapping):
        return dict(document)
    if isinstance(document, list) and document and all(isinstance(row, Mapping) for row in document):
        return {key: [row[key] for row in document] for key in document[0] if all(key in row for row in document)}
    raise ValueError("neither an object of columns nor a list of rows")
