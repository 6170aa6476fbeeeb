"""Numbers of a file as a memory map: they are not copied, and their memory is the operating system's to take back."""

from __future__ import annotations

import mmap
from typing import BinaryIO, TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", bound=np.integer)


def whole_numbers(data: npt.NDArray[np.uint8], at: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """Return the four bytes at each of these places as little-endian whole numbers, shape (places,)."""
    numbers: npt.NDArray[np.uint32] = data[at[:, None] + np.arange(4)].view("<u4")[:, 0]
    return numbers


def mapped(file: BinaryIO, dtype: np.dtype[Number], start: int, count: int) -> npt.NDArray[Number]:
    """Return numbers of an open file, shape (count,); fewer where it ends before.

    Args:
        file: The file, opened for reading.
        dtype: The type of the numbers.
        start: The byte at which the first of them begins.
        count: How many numbers there are.
    """
    if not count:
        return np.empty(0, dtype)
    before = start % mmap.ALLOCATIONGRANULARITY
    try:
        pages = mmap.mmap(
            file.fileno(), before + count * dtype.itemsize, access=mmap.ACCESS_READ, offset=start - before
        )
    except (OSError, ValueError):  # a file system without maps, or a file that became shorter
        file.seek(start)
        return np.fromfile(file, dtype, count)
    return np.frombuffer(pages, dtype, count, before)
