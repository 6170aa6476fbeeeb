"""`evaluations.npz` of Stable-Baselines3's EvalCallback: what each evaluation of the policy earned.

Arrays of shape (evaluations,), `timesteps`, and (evaluations, episodes), `results`, `ep_lengths` and `successes`.
Source: stable_baselines3/common/callbacks.py. They are read without numpy's own loader: what an entry of the archive
and the header of an array claim is checked before anything is expanded, and objects are refused.
"""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from typing import BinaryIO

import numpy as np
from numpy.lib import format as npy

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import shorten
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.log_file import LogFile

NAME = "sb3_evaluations"

_STEPS = "timesteps"
_MEANS = {"results": "eval/mean_reward", "ep_lengths": "eval/mean_ep_length", "successes": "eval/success_rate"}
"""Arrays, and what Stable-Baselines3 calls their means in its logs."""
_MAX_BYTES = 64 * 1024 * 1024
"""Bytes of one array: a million evaluations of eight episodes."""
_MAX_HEADER = 4096
_MAX_ENTRIES = 100
_NUMBERS = "buif"


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the evaluations."""
    with file.stream() as stream:
        arrays = _arrays(stream, file.name)
    steps = arrays.get(_STEPS)
    means = {_MEANS[key]: _mean(array) for key, array in arrays.items() if key in _MEANS}
    if steps is None or steps.ndim != 1 or not means:
        raise InputError(
            f"{file.name}: no evaluations of Stable-Baselines3 in it (the arrays {_STEPS} and results); "
            "name a log of the training"
        )
    count = min(len(steps), *map(len, means.values()))
    if count < max(len(steps), *map(len, means.values())):
        builder.note("its arrays are not equally long: evaluations that one of them lacks are left out")
    builder.columns({_STEPS: steps[:count]} | {name: mean[:count] for name, mean in means.items()}, {})


def _mean(array: Floats) -> Floats:
    """Return the mean over the episodes of each evaluation, shape (evaluations,)."""
    return array.reshape(len(array), -1).mean(axis=1) if array.size else np.empty(0)


def _arrays(stream: BinaryIO, name: str) -> dict[str, Floats]:
    try:
        with zipfile.ZipFile(stream) as archive:
            entries = archive.infolist()[:_MAX_ENTRIES]
            by_name = {entry.filename.removesuffix(".npy"): entry for entry in entries}
            return {key: _array(archive, by_name[key], name) for key in (_STEPS, *_MEANS) if key in by_name}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        raise InputError(f"{name}: a damaged archive ({shorten(str(error), 120)}); copy it again, whole") from None


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> Floats:
    """Return an array of numbers as floats; raises InputError if it holds anything else or more than it should."""
    what = f"{name}: {shorten(entry.filename, 60)}"
    if entry.file_size > _MAX_BYTES:
        raise InputError(
            f"{what} claims {entry.file_size:,} bytes, more than {_MAX_BYTES:,}; name a log of the training"
        )
    content = io.BytesIO(archive.read(entry))  # no more than the size that it claims
    try:
        version = npy.read_magic(content)
        header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, by_columns, kind = header(content, max_header_size=_MAX_HEADER)
    except ValueError as error:
        raise InputError(f"{what} is not an array ({shorten(str(error), 120)}); copy the file again") from None
    data = content.read()
    if kind.kind not in _NUMBERS or kind.hasobject:
        raise InputError(f"{what} holds {shorten(str(kind), 60)}, not numbers; name a log of the training")
    if math.prod(shape) * kind.itemsize != len(data) or not shape:
        raise InputError(f"{what} is not as long as its header says; copy the file again")
    return np.frombuffer(data, dtype=kind).reshape(shape, order="F" if by_columns else "C").astype(np.float64)
