"""`training_args.bin` → settings: the opcodes of the pickle are read one by one; nothing is imported or called."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from mldebug_mcp.core.access import open_input
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import shorten

MAX_FILE = 4 * 1024 * 1024
MAX_PICKLE = 1024 * 1024
"""Bytes of the pickle inside; that of TrainingArguments takes some ten thousand."""
MAX_OPCODES = 100_000
MAX_MEMO = 50_000

_DAMAGED = (
    ValueError, KeyError, IndexError, TypeError, AttributeError, EOFError, OverflowError, RuntimeError,
    zipfile.BadZipFile, NotImplementedError, zlib.error,
)  # fmt: skip
_PLAIN = frozenset(
    {"NONE", "NEWTRUE", "NEWFALSE", "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "FLOAT", "BINFLOAT",
     "STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"}
)  # fmt: skip
_CONSTANTS: dict[str, object] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_PICKLE_MARK = object()


class _Object:
    """What a pickle would build, without being built: an enumeration's arguments are its value."""

    def __init__(self, arguments: object) -> None:
        self.arguments = arguments
        self.state: object = None


def read_pickled(path: Path, opcodes: int = MAX_OPCODES) -> dict[str, object]:
    """Return the plain values in a saved Namespace, dataclass or dictionary, of so many opcodes at most.

    Raises:
        InputError: it is not such a file, too large, or damaged.
    """
    name = shorten(str(path), 200)
    with open_input(path) as file:
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise InputError(
            f"{name}: more than {MAX_FILE // 2**20} MiB are too many for saved arguments; name a JSON or YAML file"
        )
    try:
        found = _plain(_built(_pickle_in(data), opcodes), {})
    except _DAMAGED as error:
        raise InputError(
            f"{name}: the saved arguments cannot be read ({shorten(str(error), 100)}); name a JSON or YAML file"
        ) from None
    if not isinstance(found, dict) or not found:
        raise InputError(f"{name}: no settings in it; name a JSON or YAML file")
    return found


MAX_CHECKPOINT_PICKLE = 2 * 1024 * 1024
"""Bytes of the pickle of a checkpoint, without its tensors."""


def plain_values_in_checkpoint(path: Path) -> dict[str, object]:
    """Return the plain values in a file of torch.save; tensors are not read, and stand as None.

    Raises:
        InputError: it is not such a file, damaged, or holds too many values.
        OSError: it cannot be opened.
    """
    try:
        with open_input(path) as file, zipfile.ZipFile(file) as archive:
            inner = next((zip_info for zip_info in archive.infolist() if zip_info.filename.endswith("data.pkl")), None)
            if inner is None or inner.file_size > MAX_CHECKPOINT_PICKLE:
                raise ValueError("no data.pkl in it, or a large one")
            with archive.open(inner) as pickle:
                found = _plain(_built(pickle.read(MAX_CHECKPOINT_PICKLE), MAX_OPCODES), {})
    except _DAMAGED as error:
        raise InputError(f"{shorten(str(path), 200)}: its values cannot be read ({shorten(str(error), 100)})") from None
    return found if isinstance(found, dict) else {}


def _pickle_in(data: bytes) -> bytes:
    """Return the pickle in a file of torch.save, which is a zip archive, or was a row of pickles before."""
    if not data.startswith(b"PK"):
        return data
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        inner = next((zip_info for zip_info in archive.infolist() if zip_info.filename.endswith("data.pkl")), None)
        if inner is None:
            raise ValueError("no data.pkl in it")
        with archive.open(inner) as file:
            found = file.read(MAX_PICKLE + 1)
    if len(found) > MAX_PICKLE:
        raise ValueError("its pickle is too large")
    return found


def _built(data: bytes, opcodes: int) -> object:
    """Follow the opcodes of a pickle on a stack of plain values."""
    machine = _Machine()
    for count, (opcode, argument, _) in enumerate(_opcodes(data)):
        if count > opcodes:
            raise ValueError("too many opcodes")
        if opcode == "STOP":
            return machine.stack.pop()
        machine.take(opcode, argument)
    raise ValueError("cut off")


def _opcodes(data: bytes) -> Iterator[tuple[str, object, int | None]]:
    import pickletools  # few runs have a pickle

    for opcode, argument, at in pickletools.genops(data):
        yield opcode.name, argument, at


class _Machine:
    def __init__(self) -> None:
        self.stack: list[object] = []
        self.memo: dict[int, object] = {}

    def take(self, name: str, argument: object) -> None:
        """Take one opcode."""
        if name in _PLAIN:
            self.stack.append(_CONSTANTS.get(name, argument))
        elif name == "MARK":
            self.stack.append(_PICKLE_MARK)
        elif name in ("EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "EMPTY_SET"):
            self.stack.append({} if name == "EMPTY_DICT" else [])
        elif name in ("GLOBAL", "PERSID"):
            self.stack.append(str(argument))
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            self._combine(int(name[-1]))
        elif name in ("TUPLE", "LIST", "FROZENSET", "DICT"):
            items = self._to_mark()
            self.stack.append(_paired(items) if name == "DICT" else items)
        elif not (self._memorise(name, argument) or self._fill(name) or self._construct(name) or self._move(name)):
            raise ValueError(f"opcode {name}")

    def _memorise(self, name: str, argument: object) -> bool:
        if name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            key = len(self.memo) if name == "MEMOIZE" else int(str(argument))
            if len(self.memo) >= MAX_MEMO:
                raise ValueError("too many objects")
            self.memo[key] = self.stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            self.stack.append(self.memo[int(str(argument))])
        else:
            return False
        return True

    def _fill(self, name: str) -> bool:
        if name in ("SETITEMS", "APPENDS", "ADDITEMS"):
            items = self._to_mark()
        elif name in ("SETITEM", "APPEND"):
            self._combine(2 if name == "SETITEM" else 1)
            items = _as_list(self.stack.pop())
        else:
            return False
        holder = self.stack[-1]
        if isinstance(holder, dict) and name.startswith("SET"):
            holder.update(_paired(items))
        elif isinstance(holder, list):
            holder.extend(items)
        return True

    def _construct(self, name: str) -> bool:
        """Stand in for what calls something: an object without anything but its arguments and its state."""
        if name in ("REDUCE", "NEWOBJ"):
            arguments = self.stack.pop()
            self.stack[-1] = _Object(arguments)
        elif name == "NEWOBJ_EX":
            del self.stack[-2:]
            self.stack[-1] = _Object([])
        elif name in ("OBJ", "INST"):
            self.stack.append(_Object(self._to_mark()))
        elif name == "BUILD":
            state = self.stack.pop()
            if isinstance(self.stack[-1], _Object):
                self.stack[-1].state = state
        else:
            return False
        return True

    def _move(self, name: str) -> bool:
        if name == "STACK_GLOBAL":
            del self.stack[-1]
        elif name == "BINPERSID":
            self.stack[-1] = None
        elif name == "POP":
            self.stack.pop()
        elif name == "POP_MARK":
            self._to_mark()
        elif name == "DUP":
            self.stack.append(self.stack[-1])
        else:
            return name in ("PROTO", "FRAME")
        return True

    def _to_mark(self) -> list[object]:
        items: list[object] = []
        while (item := self.stack.pop()) is not _PICKLE_MARK:
            items.append(item)
        return items[::-1]

    def _combine(self, count: int) -> None:
        if len(self.stack) < count:
            raise ValueError("the stack is empty")
        items = self.stack[-count:]
        self.stack[-count:] = [items]


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _paired(items: list[object]) -> dict[object, object]:
    keys, values = items[::2], items[1::2]
    return {key: value for key, value in zip(keys, values, strict=False) if isinstance(key, (str, int, float, bool))}


def _plain(value: object, done: dict[int, object]) -> object:
    """Return plain values; of an object its state, else its only argument. What occurs twice is made once."""
    if id(value) in done:
        return done[id(value)]
    done[id(value)] = None  # an object inside itself
    done[id(value)] = made = _made(value, done)
    return made


def _made(value: object, done: dict[int, object]) -> object:
    if isinstance(value, _Object):
        state = value.state
        if isinstance(state, list) and len(state) == 2:  # (__dict__, slots)
            state = state[0] or state[1]
        arguments = _as_list(value.arguments)
        inner = state if isinstance(state, dict) else arguments[0] if len(arguments) == 1 else None
        return _plain(inner, done)
    if isinstance(value, dict):
        return {str(key): _plain(item, done) for key, item in value.items() if not str(key).startswith("__")}
    if isinstance(value, list):
        return [_plain(item, done) for item in value]
    return value if isinstance(value, (str, int, float, bool)) else None
