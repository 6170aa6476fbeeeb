"""Binary formats by their first bytes."""

from __future__ import annotations

import struct

_SIGNATURES = ((b"SQLite format 3\0", "sqlite"), (b"PAR1", "parquet"), (b":W&B", "wandb"))
OPENED_BY_NAME = ("sqlite", "parquet")
"""Formats whose libraries open a file by themselves, so that it cannot be compressed."""
_TAR_MARK = slice(257, 262)
_ZIP = b"PK\x03\x04"
_NAME_LENGTH, _NAME = slice(26, 28), 30
"""Where the first entry of a zip archive has the length of its name, and the name.

Source: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, section 4.3.7
"""
_MAX_FIRST_EVENT = 4096


def binary_format(beginning: bytes) -> str:
    """Return the name of the binary format that a file's first bytes show, or "" if none that is known."""
    for signature, name in _SIGNATURES:
        if beginning.startswith(signature):
            return name
    if beginning.startswith(_ZIP) and _first_name(beginning).endswith(b".npy"):
        return "npz"
    return "tensorboard" if _begins_with_an_event(beginning) else ""


def archive_format(beginning: bytes) -> str:
    """Return the name of the kind of archive that a file's first bytes show, or "" if it is none."""
    if beginning.startswith(_ZIP):
        return "zip"
    return "tar" if beginning[_TAR_MARK] == b"ustar" else ""


def _first_name(beginning: bytes) -> bytes:
    """Return the name of the first entry of a zip archive."""
    return beginning[_NAME : _NAME + int.from_bytes(beginning[_NAME_LENGTH], "little")]


def _begins_with_an_event(beginning: bytes) -> bool:
    """Say whether a TFRecord of a plausible length stands at the beginning; its length has a checksum of its own."""
    if len(beginning) < 12:
        return False
    length, checksum = map(int, struct.unpack_from("<QI", beginning))
    if length > _MAX_FIRST_EVENT:
        return False
    from mldebug_mcp.logs.decoding.crc32c import masked_crc32c_of

    return masked_crc32c_of(beginning[:8]) == checksum
