"""Numbers that a script prints are read as those of a snapshot, from a file or pasted."""

from __future__ import annotations

import gzip
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
        "12.0 GB allocated and 20.0 GB reserved, why?",
        "12.0GB allocated 20.0GB reserved",
        "[utils.py:782:see_memory_usage] MA 12.0 GB  Max_MA 14.1 GB  CA 20.0 GB  Max_CA 20 GB",
        "[Rank 0] memory (MB) | allocated: 12288.0 | max allocated: 13000.5 | reserved: 20480.0",
        "torch.mps.current_allocated_memory() 12884901888\ntorch.mps.driver_allocated_memory() 21474836480",
    ],
)
def test_allocated_and_reserved_memory_is_read_from_a_pasted_text(text: str) -> None:
    snapshot = check_memory(text).snapshot
    assert (snapshot.allocated_bytes, snapshot.reserved_bytes) == (12 * GIB, 20 * GIB)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzipped"])
@pytest.mark.parametrize(
    "head",
    [
        "[rank0]: ",
        "\n\n",
        "{'loss': 2.31, 'epoch': 0.1}\n",
        '{"loss": 2.31}\n{"loss": 2.2}\n',
        '{"level": "INFO", "text": "',
        "[2026-11-28 10:00:00,000] ",
        "step 1\n",
    ],
)
def test_a_log_may_begin_as_json_or_a_profile_does(head: str, packed: bool, tmp_path: Path) -> None:
    log = tmp_path / ("log.txt.gz" if packed else "log.txt")
    text = f'{head}allocated: 12.00 GiB, reserved: 20.00 GiB"}}\n'.encode()
    log.write_bytes(gzip.compress(text) if packed else text)

    snapshot = check_memory(log).snapshot

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


@pytest.mark.parametrize(
    "text",
    [
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 24.00 GiB of which 1.00 GiB is "
        "free. Of the allocated memory 12.00 GiB is allocated by PyTorch, and 8.00 GiB is reserved by PyTorch but "
        "unallocated.",
        "| Allocated memory | 12288 MiB | 12288 MiB |\n| GPU reserved memory | 20480 MiB | 20480 MiB |",
    ],
)
def test_a_message_of_one_line_is_read_where_a_path_is_expected(text: str) -> None:
    head = "PyTorch CUDA memory summary, device ID 0\n" if text.startswith("|") else ""
    snapshot = check_memory(head + text).snapshot
    assert (snapshot.allocated_bytes, snapshot.reserved_bytes) == (12 * GIB, 20 * GIB)


@pytest.mark.parametrize(
    "text",
    [
        "[0] NVIDIA A100 | 42'C,  97 % | 20480 / 40960 MB | user(20400M)",
        "GPU[0]\t\t: VRAM Total Memory (B): 42949672960\nGPU[0]\t\t: VRAM Total Used Memory (B): 21474836480",
        "{'bytes_in_use': 21474836480, 'largest_free_block_bytes': 5368709120, 'bytes_limit': 42949672960}",
    ],
)
def test_used_and_total_memory_of_other_tools_is_read(text: str) -> None:
    device = check_memory(text).devices[0]
    assert (device.reserved_bytes, device.capacity_bytes) == (20 * GIB, 40 * GIB)


def test_memory_of_another_kind_is_no_total() -> None:
    with pytest.raises(InputError):
        check_memory("Total non KV cache memory: 16.69GiB; torch peak memory increase: 1.40GiB")


@pytest.mark.parametrize("text", ["allocated 12\nreserved 20\n", "free seats: 12\ntotal: 20\n", "loss 2.1\n"])
def test_numbers_that_are_not_of_memory_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="neither a memory snapshot"):
        check_memory(text + "\nmore")


@pytest.mark.parametrize("text", ["Max memory allocated: 30.1 GB", "mem 20311MiB", "GPU memory: 12.3 GiB / 24.0 GiB"])
def test_a_pasted_line_with_too_little_says_what_is_needed_and_is_no_missing_file(text: str) -> None:
    with pytest.raises(InputError, match="lines with allocated and reserved memory"):
        check_memory(text)


def test_allocated_and_reserved_alone_do_not_tell_cache_from_pieces() -> None:
    report = check_memory("allocated 2.47 GB, reserved 16.69 GB")

    assert "fragmentation" not in {one.finding for one in report.findings}
    assert "whether in pieces or in whole segments is not in the text" in " ".join(report.notes)
    assert "fragmentation" not in next(one.summary for one in report.findings if one.finding == "healthy").split(";")[0]


@pytest.mark.parametrize(("peak", "fragmented"), [("9.0", True), ("15.9", False)])
def test_what_is_reserved_beyond_the_peak_is_fragmented(peak: str, fragmented: bool) -> None:
    report = check_memory(f"allocated 2.47 GB, max allocated {peak} GB, reserved 16.69 GB")

    assert ("fragmentation" in {one.finding for one in report.findings}) == fragmented
