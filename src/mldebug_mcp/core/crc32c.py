"""The checksums of TFRecord files: CRC-32C (Castagnoli), masked.

Sources: https://www.tensorflow.org/tutorials/load_data/tfrecord (the format) and RFC 3720, appendix B.4 (the CRC).
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

_POLYNOMIAL = 0x82F63B78


@cache
def _table() -> NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(_POLYNOMIAL), table >> 1)
    return table


def masked_crc32c(rows: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Return the masked checksum of each row of bytes, shape (rows, bytes) → (rows,)."""
    table = _table()
    crc = np.full(len(rows), 0xFFFF_FFFF, dtype=np.uint32)
    column: NDArray[np.uint8]
    for column in np.ascontiguousarray(rows.T):
        crc = table[(crc ^ column) & 255] ^ (crc >> 8)
    crc = ~crc
    return ((crc >> 15 | crc << 17) + np.uint32(0xA282_EAD8)).astype(np.uint32, copy=False)


def masked_crc32c_of(data: bytes) -> int:
    """Return the masked checksum of some bytes."""
    return int(masked_crc32c(np.frombuffer(data, dtype=np.uint8)[np.newaxis])[0])
