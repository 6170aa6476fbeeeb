"""Reading a pickle's opcodes before anything is built: what a snapshot cannot hold is refused here.

A snapshot is dictionaries, lists, strings, numbers and pairs of numbers. Every opcode that could import or call
something is refused by its name and place; so are those that make the C unpickler allocate, recurse or collide
without bound: a memo index far beyond what the file can fill, lengths beyond its end, integers wider than 64 bits,
deeply nested tuples (whose hash recurses in C), and floods of empty containers. What passes costs memory in
proportion to the file.

Nearly all of a snapshot is one run of short opcodes, which one regular expression walks at about 200 MB/s, in half of
the time that the C unpickler takes. A second interpreter with a memory limit would start no faster and would not work
on every system.
"""

from __future__ import annotations

import re
from typing import BinaryIO

import numpy as np

from mldebug_mcp.errors import InputError
from mldebug_mcp.progress import checkpoint

CHUNK_BYTES = 4 * 1024 * 1024
MAX_STRING = 16 * 1024 * 1024
MAX_TUPLES = 5_000
"""Tuples other than pairs of integers; a snapshot has none. If they all nest, the C stack still holds."""
MAX_DENSITY = 4
"""Of this many bytes at most one may create a container or None; a snapshot needs fifty bytes for each."""
SPARE = 100_000

_TEXT_LINES = {ord(letter) for letter in "IFLVSgp"}
_STRING_LENGTH = {0x8C: 1, 0x58: 4, 0x8D: 8, 0x54: 4, 0x55: 1}
_TUPLES = frozenset(b"t)\x85\x86\x87")
_FIXED = frozenset(b"KMJhjqrG\x8a\x95\x80")
"""Opcodes with an argument that the pattern knows: where it stopped at one, its argument is missing or out of
bounds."""
_CREATING = b"}](N)"
_STOP = 0x2E
MAX_LINE = 1024 * 1024


def _walk(size: int) -> re.Pattern[bytes]:
    """Return the pattern of a run of harmless opcodes in a pickle of this many bytes."""
    # A pickle that puts objects into its memo by index spends four bytes on each, so higher indices are never reached.
    highest = (size // 4 + 256) >> 16
    index = b"..[\\x00-\\x%02x]\\x00" % min(highest, 255) if highest < 256 else b"...[\\x00-\\x%02x]" % (highest >> 8)
    get, marks, small = b"h.", rb"[\](}\x94seau]++", rb"K.(?:(?:K.|M..)\x86|)"
    number = rb"J....|\x8a\x06.{6}|\x8a\x07.{7}|" + small
    # Stacks are runs of references into the memo, events are references each followed by another, a number or a mark.
    # Each turn of the outer loop costs as much as ten characters, so one turn takes as many opcodes as it can.
    argument = number + rb"|" + marks + rb"|"
    second = get * 14 + rb"|" + get * 3 + rb"|" + get + rb"(?:" + number + rb"|)|" + argument
    references = get + rb"(?:" + get + rb"(?:" + second + rb")|" + argument + rb")"
    return re.compile(
        rb"(?:"
        + references
        + rb"|"
        + b"j...." * 4
        + rb"|j....|"
        + marks
        + rb"|"
        + number
        + rb"|M..|q.|r"
        + index
        + rb"|\x8a(?:\x05.{5}|\x08.{8}|\x04.{4}|\x03...|\x02..|\x01.|\x00)"
        + rb"|[N\x88\x89ld]|G.{8}|\x95.{8}|\x80[\x00-\x05])*+",
        re.DOTALL,
    )


class _Window:
    """The stretch of the stream that is being looked at."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self.stream = stream
        self.size = size
        self.data = b""
        self.position = 0
        self.before = 0
        self.dense = 0

    @property
    def offset(self) -> int:
        return self.before + self.position

    def need(self, count: int) -> bool:
        """Make `count` bytes available from the position on; False where the file has no more."""
        while len(self.data) - self.position < count:
            more = self.stream.read(CHUNK_BYTES)
            if not more:
                return False
            octets = np.frombuffer(more, np.uint8)
            self.dense += sum(int(np.count_nonzero(octets == opcode)) for opcode in _CREATING)
            self.before += self.position
            self.data = self.data[self.position :] + more
            self.position = 0
            checkpoint(f"{self.before:,} bytes of the snapshot looked through")
        return True


def scan(stream: BinaryIO, size: int, name: str) -> tuple[int, int]:
    """Walk the opcodes of a pickle up to its end; returns how many bytes it has and how many containers at most.

    Args:
        stream: The pickle, uncompressed.
        size: Bytes that it can have at most.
        name: What to call it in messages.

    Raises:
        InputError: it is truncated, or holds what no snapshot holds.
    """
    window = _Window(stream, size)
    pattern = _walk(size)
    tuples = 0
    while window.need(16) or window.position < len(window.data):
        end = pattern.match(window.data, window.position)
        assert end is not None  # the pattern matches the empty string  # noqa: S101
        window.position = end.end()
        if len(window.data) - window.position < 16 and window.need(16):
            continue
        if window.position >= len(window.data):
            break
        opcode = window.data[window.position]
        if opcode in _FIXED and len(window.data) - window.position < 10:
            break
        if opcode == _STOP:
            return _checked_density(window, name)
        if opcode in _TUPLES:
            tuples += 1
            window.position += 1
            if tuples > MAX_TUPLES:
                raise InputError(f"{name}: more tuples than a memory snapshot has; refused at byte {window.offset:,}")
        else:
            _skip(window, opcode, name)
    raise InputError(
        f"{name}: the pickle ends at byte {window.offset:,} before it is complete: the dump was cut off; copy "
        "or record it again"
    )


def _checked_density(window: _Window, name: str) -> tuple[int, int]:
    length = window.offset + 1
    if window.dense > (window.before + len(window.data)) // MAX_DENSITY + SPARE:
        raise InputError(f"{name}: a flood of empty containers, not a memory snapshot; refused")
    return length, window.dense


def _skip(window: _Window, opcode: int, name: str) -> None:
    """Step over one opcode that the pattern does not know: a string or a line of text, or refuse it."""
    if opcode in _STRING_LENGTH:
        width = _STRING_LENGTH[opcode]
        window.need(1 + width)
        length = int.from_bytes(window.data[window.position + 1 : window.position + 1 + width], "little")
        if length > MAX_STRING:
            raise InputError(f"{name}: a string of {length:,} bytes at byte {window.offset:,}; refused")
        if not window.need(1 + width + length):
            raise InputError(f"{name}: the file ends inside a string at byte {window.offset:,}; it was cut off")
        window.position += 1 + width + length
    elif opcode in _TEXT_LINES:
        _skip_line(window, opcode, name)
    else:
        raise InputError(
            f"{name}: {_opcode_name(opcode)} at byte {window.offset:,}; a memory snapshot holds only dictionaries, "
            "lists, strings and numbers, so this file is not a snapshot, or a hostile one; nothing in it was run"
        )


def _skip_line(window: _Window, opcode: int, name: str) -> None:
    """Step over an opcode of the oldest protocols, whose argument is a line of text."""
    limit = 24 if chr(opcode) in "ILgp" else MAX_LINE
    window.need(limit)
    end = window.data.find(b"\n", window.position, window.position + limit)
    argument = window.data[window.position + 1 : end].strip(b"L")
    if end < 0 or (chr(opcode) in "gp" and not (argument.isdigit() and int(argument) <= window.size // 4 + 256)):
        raise InputError(
            f"{name}: {_opcode_name(opcode)} with an impossible argument at byte {window.offset:,}; refused"
        )
    window.position = end + 1


def _opcode_name(opcode: int) -> str:
    import pickletools

    known = {ord(one.code): one.name for one in pickletools.opcodes}
    return f"the opcode {known[opcode]}" if opcode in known else f"the byte {opcode:#04x}, which is not an opcode,"
