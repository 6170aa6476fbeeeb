"""Binary formats by their first bytes."""

from __future__ import annotations

import struct

_SIGNATURES = ((b"SQLite format 3\0", "sqlite"), (b"PAR1", "parquet"), (b":W&B", "wandb"))
_MAX_FIRST_EVENT = 4096


def binary_format(beginning: bytes) -> str:
    """Return the name of the binary format that a file's first bytes show, or "" if none that is known."""
    for signature, name in _SIGNATURES:
        if beginning.startswith(signature):
            return name
    return "tensorboard" if _begins_with_an_event(beginning) else ""


def _begins_with_an_event(beginning: bytes) -> bool:
    """Say whether a TFRecord of a plausible length stands at the beginning; its length has a checksum of its own."""
    if len(beginning) < 12:
        return False
    length, checksum = map(int, struct.unpack_from("<QI", beginning))
    if length > _MAX_FIRST_EVENT:
        return False
    from mldebug_mcp.logs.decoding.crc32c import masked_crc32c_of

    return masked_crc32c_of(beginning[:8]) == checksum
