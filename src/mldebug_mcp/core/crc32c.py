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


def _masked(crc: NDArray[np.uint32]) -> NDArray[np.uint32]:
    crc = ~crc
    return ((crc >> 15 | crc << 17) + np.uint32(0xA282_EAD8)).astype(np.uint32, copy=False)


def masked_crc32c(rows: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Return the masked checksum of each row of bytes, shape (rows, bytes) → (rows,)."""
    table = _table()
    crc = np.full(len(rows), 0xFFFF_FFFF, dtype=np.uint32)
    column: NDArray[np.uint8]
    for column in np.ascontiguousarray(rows.T):
        crc = table[(crc ^ column) & 255] ^ (crc >> 8)
    return _masked(crc)


def masked_crc32c_of(data: bytes) -> int:
    """Return the masked checksum of some bytes."""
    return int(masked_crc32c(np.frombuffer(data, dtype=np.uint8)[np.newaxis])[0])


# The checksums of many messages at once. A checksum is a linear map of the bits, and zeros in front change nothing: so
# messages are filled up in front to whole blocks, all blocks are taken together, and those of a message are joined in
# pairs, as in a tree.


BLOCK = 128
"""Bytes of a block. Chosen by trial: longer ones take more steps, shorter ones more joining."""
BLOCKS_AT_ONCE = 8192
"""Blocks that are computed together. Chosen by trial: they stay in the processor's cache."""
_FIRST_STATE = np.uint32(0xFFFF_FFFF)
"""The state before a message's first byte."""


def masked_crc32c_of_parts(
    data: NDArray[np.uint8], start: NDArray[np.int64], stop: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """Return the masked checksums of stretches of some bytes, shape (stretches,).

    Args:
        data: The bytes, shape (n,).
        start: Where each stretch begins.
        stop: Where it ends.
    """
    prefix = _prefix()
    blocks = -(-(stop - start + len(prefix)) // BLOCK)
    ends = np.cumsum(blocks)
    filled = np.zeros(int(ends[-1]) * BLOCK if len(ends) else 0, np.uint8)
    for end, first, last in zip((ends * BLOCK).tolist(), start.tolist(), stop.tolist(), strict=True):
        filled[end - (last - first) : end] = data[first:last]
        filled[end - (last - first) - len(prefix) : end - (last - first)] = prefix
    words = filled.view("<u4").reshape(-1, BLOCK // 4)
    parts = range(0, len(words), BLOCKS_AT_ONCE)
    states = [_of_blocks(words[first : first + BLOCKS_AT_ONCE]) for first in parts]
    return _masked(_joined(np.concatenate([np.empty(0, np.uint32), *states]), blocks))


def _of_blocks(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the state after each row of words, begun with 0."""
    low, high = _word_tables()
    crc = np.zeros(len(words), np.uint32)
    column: NDArray[np.uint32]
    for column in np.ascontiguousarray(words.T):
        crc ^= column
        crc = low.take(crc & np.uint32(0xFFFF)) ^ high.take(crc >> np.uint32(16))
    return crc


def _joined(states: NDArray[np.uint32], blocks: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the state of each message from those of its blocks, so many of each."""
    shift = _shift_of_block()
    while len(states) > len(blocks):
        # The second of two is shifted over by none; an odd one in front stays as it is.
        stops = np.cumsum(blocks)
        pairs = -(-blocks // 2)
        ends = np.cumsum(pairs)
        from_end = np.repeat(ends, pairs) - 1 - np.arange(ends[-1])
        second = np.repeat(stops, pairs) - 1 - 2 * from_end
        has_first = second > np.repeat(stops - blocks, pairs)
        joined = states[second]
        joined[has_first] ^= _mapped(shift, states[second[has_first] - 1])
        states, blocks, shift = joined, pairs, _mapped(shift, shift)
    return states


def _mapped(images: NDArray[np.uint32], states: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return what a linear map makes of states, by what it makes of each of the 32 bits."""
    result = np.zeros_like(states)
    for bit, image in enumerate(images):
        result ^= (states >> np.uint32(bit) & np.uint32(1)) * image
    return result


def _after_zeros(states: NDArray[np.uint32], count: int) -> NDArray[np.uint32]:
    """Return the states after so many bytes of 0."""
    for _ in range(count):
        states = _table()[states & 255] ^ (states >> 8)
    return states


@cache
def _word_tables() -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the states after four bytes of 0, by the lower and by the upper half of the state before."""
    halves = np.arange(65_536, dtype=np.uint32)
    return _after_zeros(halves, 4), _after_zeros(halves, 2)


@cache
def _shift_of_block() -> NDArray[np.uint32]:
    return _after_zeros(np.uint32(1) << np.arange(32, dtype=np.uint32), BLOCK)


@cache
def _prefix() -> NDArray[np.uint8]:
    """Return the four bytes that lead from the state 0 to the first one."""
    table, state = _table(), int(_FIRST_STATE)
    for _ in range(4):
        byte = int(np.flatnonzero(table >> 24 == state >> 24)[0])
        state = (state ^ int(table[byte])) << 8 & 0xFFFF_FFFF | byte
    return np.frombuffer(state.to_bytes(4, "little"), np.uint8)
