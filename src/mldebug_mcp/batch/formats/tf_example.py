"""Messages of the type `tf.train.Example`, which TFRecord and ArrayRecord files hold: lists of numbers by name.

Sources: https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/example/feature.proto and
https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.sequences import Ragged
from mldebug_mcp.batch.table import Column, Table
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.protobuf import fields
from mldebug_mcp.core.text import shorten

BYTES_LIST, FLOAT_LIST, INT64_LIST = 1, 2, 3
LAST_BYTE = 127
"""Greatest value of the last byte of a number; the bytes before it are greater."""
MOST_BYTES = 10
"""Of a number of 64 bits."""


class Packed(NamedTuple):
    """Whole numbers as the message holds them; they are decoded for many messages at once."""

    data: bytes


Value = Packed | npt.NDArray[np.float32] | list[bytes]


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
            whole = b"".join(packed)
            if whole and whole[-1] > LAST_BYTE:
                raise ValueError("a number is cut off")
            return Packed(whole)
        if kind == FLOAT_LIST:
            return np.frombuffer(b"".join(content for _, content in _fields(listed)), "<f4")
        if kind == BYTES_LIST:
            return [bytes(content) for _, content in _fields(listed)]
        raise ValueError("a kind that no Feature has")
    return None


def _whole_numbers(lists: Sequence[Packed]) -> Ragged:
    """Return the numbers of packed lists. Raises ValueError if one is too long.

    A number has seven bits in each of its bytes, the least significant ones first.
    """
    data = np.frombuffer(b"".join(packed.data for packed in lists), np.uint8)
    last = np.flatnonzero(data <= LAST_BYTE)
    start = np.concatenate([[0], last[:-1] + 1]) if len(last) else last
    further = last - start
    numbers = (data[start] & 127).astype(np.uint64)
    for place in range(1, int(further.max(initial=0)) + 1):
        if place == MOST_BYTES:
            raise ValueError("a number of more than ten bytes")
        longer = np.flatnonzero(further >= place)
        numbers[longer] |= (data[start[longer] + place] & 127).astype(np.uint64) << np.uint64(7 * place)
    ends = np.searchsorted(last, np.cumsum([len(packed.data) for packed in lists]))
    return Ragged(numbers.view(np.int64), np.concatenate([[0], ends]).astype(np.int64))


def _fields(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield the number and content of each field. Raises ValueError where the message is broken."""
    for part in fields(data, 0, len(data)):
        yield part.number, data[part.start : part.end]


NOTE = "read as examples of TensorFlow (tf.train.Example)"


def table_of(examples: Sequence[Mapping[str, Value]], file: Path) -> Table:
    """Return the features that all of some examples of a file have as columns: numbers as they are, bytes as text.

    Raises:
        InputError: a number is too long.
    """
    shared = [name for name in examples[0] if all(name in example for example in examples)]
    try:
        columns = {name: _column([example[name] for example in examples]) for name in shared}
    except ValueError as error:
        raise InputError(f"{shorten(str(file), 200)}: a record is not a tf.train.Example ({error})") from None
    return Table(columns, notes=[NOTE], shard=file.name)


def _column(values: Sequence[Value]) -> Column:
    packed = [value for value in values if isinstance(value, Packed)]
    if len(packed) == len(values):
        return _whole_numbers(packed)
    return [_listed(value) for value in values]


def _listed(value: Value) -> object:
    if isinstance(value, Packed):
        return _whole_numbers([value]).flat.tolist()
    return _text(value) if isinstance(value, list) else value


def _text(values: list[bytes]) -> object:
    texts = [value.decode("utf-8", "replace") for value in values]
    return texts[0] if len(texts) == 1 else texts
