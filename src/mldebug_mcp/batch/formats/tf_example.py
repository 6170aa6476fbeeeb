"""Messages of the type `tf.train.Example`, which TFRecord and ArrayRecord files hold: lists of numbers by name.

Sources: https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/example/feature.proto and
https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.sequences import Ints, Ragged, offsets_of
from mldebug_mcp.batch.table import Column
from mldebug_mcp.core.protobuf import fields

BYTES_LIST, FLOAT_LIST, INT64_LIST = 1, 2, 3

Value = Ints | npt.NDArray[np.float32] | list[bytes]


def example(message: bytes) -> dict[str, Value]:
    """Return the features of an Example by name. Raises ValueError if it is none."""
    found: dict[str, Value] = {}
    data = memoryview(message)
    for number, features in _fields(data):
        if number != 1:
            raise ValueError("a field that no Example has")
        for _, entry in _fields(features):
            name, value = "", None
            for field, content in _fields(entry):
                if field == 1:
                    name = bytes(content).decode("utf-8")
                else:
                    value = _feature(content)
            if value is not None:
                found[name] = value
    if not found:
        raise ValueError("no feature")
    return found


def _feature(data: memoryview) -> Value | None:
    for kind, listed in _fields(data):
        if kind == INT64_LIST:
            packed = [content for field, content in _fields(listed) if field == 1]
            return _varints(np.frombuffer(b"".join(packed), np.uint8))
        if kind == FLOAT_LIST:
            return np.frombuffer(b"".join(content for _, content in _fields(listed)), "<f4")
        if kind == BYTES_LIST:
            return [bytes(content) for _, content in _fields(listed)]
        raise ValueError("a kind that no Feature has")
    return None


def _varints(data: npt.NDArray[np.uint8]) -> Ints:
    """Return the whole numbers of a packed list. Raises ValueError if the last one is cut off or one is too long."""
    last = np.flatnonzero(data < 128)
    if len(data) and (not len(last) or last[-1] != len(data) - 1):
        raise ValueError("a number is cut off")
    starts = np.concatenate([[0], last[:-1] + 1]).astype(np.int64) if len(last) else last
    place = np.arange(len(data)) - np.repeat(starts, np.diff(np.append(starts, len(data))))
    if len(data) and int(place.max()) > 9:
        raise ValueError("a number of more than ten bytes")
    parts = (data & 127).astype(np.uint64) << (7 * place).astype(np.uint64)
    return np.add.reduceat(parts, starts).view(np.int64) if len(data) else np.empty(0, np.int64)


def _fields(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield the number and content of each field. Raises ValueError where the message is broken."""
    for part in fields(data, 0, len(data)):
        yield part.number, data[part.start : part.end]


def columns_of(examples: Sequence[Mapping[str, Value]]) -> dict[str, Column]:
    """Return the features that all of some examples have as columns: numbers as they are, bytes as text."""
    shared = [name for name in examples[0] if all(name in one for one in examples)]
    return {name: _column([one[name] for one in examples]) for name in shared}


def _column(values: Sequence[Value]) -> Column:
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    if len(arrays) < len(values):
        return [_text(value) if isinstance(value, list) else value.tolist() for value in values]
    if arrays[0].dtype.kind == "i":
        return Ragged(np.concatenate(arrays), offsets_of(np.array([len(array) for array in arrays], np.int64)))
    return list(arrays)


def _text(values: list[bytes]) -> object:
    texts = [value.decode("utf-8", "replace") for value in values]
    return texts[0] if len(texts) == 1 else texts
