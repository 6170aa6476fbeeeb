"""Numbers that a script prints are read as those of a snapshot, from a file or pasted."""

from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge.memory import check_memory

GIB = 1024**3


@pytest.mark.parametrize(
    "text",
    [
        "allocated: 12.00 GiB, reserved: 20.00 GiB, free: 4.00 GiB, total: 24.00 GiB",
        "step 10 | Memory allocated (GB): 12.0 | Memory reserved (GB): 20.0",
        "torch.cuda.memory_allocated() = 12884901888\ntorch.cuda.memory_reserved() = 21474836480",
        "mem_alloc: 12288 MB\nreserved: 20480 MB",
        "{'memory_allocated': 12884901888, 'memory_reserved': 21474836480}",
    ],
)
def test_allocated_and_reserved_memory_is_read_from_a_pasted_text(text: str) -> None:
    snapshot = check_memory(text).snapshot
    assert (snapshot.allocated_bytes, snapshot.reserved_bytes) == (12 * GIB, 20 * GIB)


def test_the_last_numbers_of_a_log_count(tmp_path: Path) -> None:
    log = tmp_path / "memory.txt"
    log.write_text(
        "cuda:0 allocated 1.0 GiB reserved 2.0 GiB\ncuda:1 allocated 3.0 GiB reserved 4.0 GiB\n"
        "cuda:0 allocated 5.0 GiB reserved 6.0 GiB max_memory_allocated: 5.5 GiB\n"
    )
    devices = check_memory(log).devices
    assert [device.allocated_bytes for device in devices] == [5 * GIB, 3 * GIB]
    assert devices[0].peak_allocated_bytes == int(5.5 * GIB)


@pytest.mark.parametrize("text", ["allocated 12\nreserved 20\n", "free seats: 12\ntotal: 20\n", "loss 2.1\n"])
def test_numbers_that_are_not_of_memory_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="neither a memory snapshot"):
        check_memory(text + "\nmore")
