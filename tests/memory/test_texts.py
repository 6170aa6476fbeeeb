from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge.memory import check_memory
from mldebug_mcp.memory.read import parse_text

GIB = 1024**3
MIB = 1024**2

MESSAGES = {
    "1.4": "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; "
    "9.76 GiB already "
    "allocated; 21.12 MiB free; 9.88 GiB reserved in total by PyTorch)",
    "1.13": "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 5.37 GiB (GPU 1; 23.65 GiB "
    "total capacity; 10.50 GiB "
    "already allocated; 2.13 GiB free; 16.00 GiB reserved in total by PyTorch) If reserved memory is >> "
    "allocated memory try setting "
    "max_split_size_mb to avoid fragmentation.",
    "2.1": "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.37 GiB. GPU 0 has a total "
    "capacty of 79.11 GiB of which "
    "2.93 GiB is free. Including non-PyTorch memory, this process has 76.17 GiB memory in use. Of the allocated "
    "memory 68.61 GiB is "
    "allocated by PyTorch, and 5.63 GiB is reserved by PyTorch but unallocated.",
    "2.5": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 18.56 GiB. GPU 0 has a total capacity "
    "of 47.37 GiB of which "
    "17.60 GiB is free. Process 3606394 has 2.27 GiB memory in use. Including non-PyTorch memory, this process "
    "has 27.45 GiB memory in "
    "use. Of the allocated memory 25.54 GiB is allocated by PyTorch, and 1.52 GiB is reserved by PyTorch but "
    "unallocated. If reserved "
    "but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid "
    "fragmentation.",
    "wrapped": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 298.00 MiB.\nGPU 3 has a total "
    "capacity of 44.39 GiB of which "
    "12.06 MiB is free.\nProcess 6324 has 8.06 GiB memory in use.\nIncluding non-PyTorch memory, this process "
    "has 36.30 GiB memory in "
    "use. Of the allocated memory 35.00 GiB is allocated by PyTorch, with 40.00 MiB allocated in private pools "
    "(e.g., CUDA Graphs), and "
    "500.00 MiB is reserved by PyTorch but unallocated.",
}
EXPECTED = {
    "1.4": (0, 20 * MIB, 9.76 * GIB, 9.88 * GIB, 21.12 * MIB, 10.76 * GIB),
    "1.13": (1, 5.37 * GIB, 10.5 * GIB, 16 * GIB, 2.13 * GIB, 23.65 * GIB),
    "2.1": (0, 6.37 * GIB, 68.61 * GIB, 74.24 * GIB, 2.93 * GIB, 79.11 * GIB),
    "2.5": (0, 18.56 * GIB, 25.54 * GIB, 27.06 * GIB, 17.6 * GIB, 47.37 * GIB),
    "wrapped": (3, 298 * MIB, 35 * GIB, 35 * GIB + 500 * MIB, 12.06 * MIB, 44.39 * GIB),
}
FRAGMENTED = {"1.4": False, "1.13": True, "2.1": False, "2.5": False, "wrapped": False}
"""Whether more was reserved and unused than was asked for: a little of it is ordinary."""


@pytest.mark.parametrize("wording", MESSAGES)
def test_every_wording_of_the_message_is_read(wording: str) -> None:
    device = parse_text(f"epoch 3 | loss 2.1\nTraceback ...\n{MESSAGES[wording]}\n").devices[0]

    assert device.oom is not None
    read = (
        device.device,
        device.oom.requested,
        device.allocated,
        device.reserved,
        device.oom.device_free,
        device.capacity,
    )
    assert read == pytest.approx(EXPECTED[wording], rel=1e-6)


@pytest.mark.parametrize("wording", MESSAGES)
def test_a_message_is_judged_as_a_snapshot_is(wording: str, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(MESSAGES[wording])

    report = check_memory(path)

    found = {one.finding for one in report.findings}
    assert "oom" in found
    assert ("fragmentation" in found) == FRAGMENTED[wording]
    assert any("totals only" in note for note in report.notes)
    assert report.oom is not None
    assert report.oom.largest_free_bytes is None


@pytest.mark.parametrize(("allowed", "cause"), [("", "fragmentation"), (" 8.00 GiB allowed;", "out_of_memory")])
def test_a_request_that_the_device_had_room_for_is_not_said_to_exceed_it(
    allowed: str, cause: str, tmp_path: Path
) -> None:
    path = tmp_path / "oom.txt"
    path.write_text(
        "CUDA out of memory. Tried to allocate 304.00 MiB. GPU 0 has a total capacity of 16.00 GiB of which 6.32 GiB "
        f"is free.{allowed} Of the allocated memory 7.90 GiB is allocated by PyTorch, and 15.00 MiB is reserved by "
        "PyTorch but unallocated.",
        encoding="utf-8",
    )
    report = check_memory(path)
    assert report.hypotheses[0].cause == cause
    assert ("fragmentation" in {one.finding for one in report.findings}) == (cause == "fragmentation")


@pytest.mark.parametrize(
    ("listed", "others"),
    [
        ("Process 9 has 77.90 GiB memory in use.", 0),
        ("Process 9 has 8.00 GiB memory in use. Process 10 has 69.90 GiB memory in use.", 8),
    ],
)
def test_a_process_in_a_container_is_not_taken_for_another_one(listed: str, others: int) -> None:
    device = parse_text(
        "CUDA out of memory. Tried to allocate 9.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.20 GiB is "
        f"free. {listed} Of the allocated memory 60.10 GiB is allocated by PyTorch, and 5.00 GiB is reserved by "
        "PyTorch but unallocated."
    ).devices[0]
    assert device.oom is not None
    assert device.oom.others == others * GIB


def test_the_last_message_of_each_device_counts() -> None:
    read = parse_text("\n".join(MESSAGES.values()))

    assert [one.device for one in read.devices] == [0, 1, 3]
    assert read.devices[0].oom is not None
    assert read.devices[0].oom.requested == int(18.56 * GIB)


SUMMARY = """\
|===========================================================================|
|                  PyTorch CUDA memory summary, device ID 0                 |
|---------------------------------------------------------------------------|
|            CUDA OOMs: 2            |        cudaMalloc retries: 3         |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      |   4096 MiB |  20480 MiB |  81920 MiB |  77824 MiB |
|       from large pool |   4090 MiB |  20470 MiB |  81900 MiB |  77810 MiB |
|---------------------------------------------------------------------------|
| Requested memory      |   4000 MiB |  20400 MiB |  81900 MiB |  77900 MiB |
|---------------------------------------------------------------------------|
| GPU reserved memory   |  22528 MiB |  22528 MiB |  22528 MiB |      0 B   |
|---------------------------------------------------------------------------|
| Non-releasable memory |  10240 MiB |  11264 MiB |  40960 MiB |  30720 MiB |
|===========================================================================|
"""


def test_memory_summary_is_read() -> None:
    device = parse_text(SUMMARY).devices[0]

    assert (device.allocated, device.peak_allocated) == (4096 * MIB, 20480 * MIB)
    assert (device.reserved, device.free.split) == (22528 * MIB, 10240 * MIB)
    assert device.oom is not None
    assert device.oom.count == 2


def test_memory_summary_shows_fragmentation(tmp_path: Path) -> None:
    path = tmp_path / "summary.txt"
    path.write_text(SUMMARY.replace("CUDA OOMs: 2", "CUDA OOMs: 0"))

    assert "fragmentation" in {one.finding for one in check_memory(path).findings}


SMI = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:07:00.0 Off |                    0 |
| N/A   31C    P0             62W /  400W |   70312MiB /  81920MiB |     98%      Default |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA A100-SXM4-80GB          On  |   00000000:0F:00.0 Off |                    0 |
| N/A   30C    P0             60W /  400W |   20312MiB /  81920MiB |     97%      Default |
+-----------------------------------------------------------------------------------------+
"""


@pytest.mark.parametrize(
    "text",
    [
        SMI,
        "index, name, memory.used [MiB], memory.total [MiB]\n0, NVIDIA A100, 70312 MiB, 81920 MiB\n1, NVIDIA "
        "A100, 20312 MiB, 81920 MiB\n",
    ],
)
def test_nvidia_smi_is_read_and_devices_compared(text: str, tmp_path: Path) -> None:
    path = tmp_path / "smi.txt"
    path.write_text(text)

    report = check_memory(path)

    assert [one.peak_reserved_bytes for one in report.devices] == [70312 * MIB, 20312 * MIB]
    assert {one.capacity_bytes for one in report.devices} == {81920 * MIB}
    assert "device_imbalance" in {one.finding for one in report.findings}


@pytest.mark.parametrize(
    "text",
    [
        "[0] NVIDIA A100 | 45'C,  99 % | 70312 / 81920 MB | me(69000M)\n",
        "|   0  NVIDIA A100 On | 00000000:07:00.0 Off |\n| N/A 31C P0 62W / 400W | 70312MiB / 81920MiB |\n",
    ],
    ids=["gpustat", "nvidia-smi"],
)
def test_the_sum_of_a_device_alone_is_neither_healthy_nor_faulty(text: str, tmp_path: Path) -> None:
    path = tmp_path / "gpustat.txt"
    path.write_text(text)

    report = check_memory(path)

    assert (report.findings, report.hypotheses) == ([], [])
    assert report.devices[0].peak_reserved_bytes == 70312 * MIB


def test_a_text_about_something_else_is_refused() -> None:
    with pytest.raises(InputError, match="neither a memory snapshot"):
        parse_text("step 1 loss 2.0\nstep 2 loss 1.9\n")


def test_a_device_that_others_fill_is_to_be_freed_of_them_first(tmp_path: Path) -> None:
    full = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 224.00 MiB. GPU 0 has a total capacity of 23.69 "
        "GiB of which 121.69 MiB is free. Process 31417 has {} GiB memory in use. Including non-PyTorch memory, this "
        "process has {} GiB memory in use. Of the allocated memory {} GiB is allocated by PyTorch, and 90.40 MiB is "
        "reserved by PyTorch but unallocated."
    )
    fixes = {}
    for name, sizes in {"others": (19.02, 4.54, 4.11), "own": (1.02, 22.54, 22.11)}.items():
        (tmp_path / "oom.txt").write_text(full.format(*sizes))
        fixes[name] = check_memory(tmp_path / "oom.txt").findings[0].fix
    assert "nvidia-smi" in fixes["others"]
    assert "nvidia-smi" not in fixes["own"]


def test_the_fix_and_the_next_step_are_of_the_cause_that_leads(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(MESSAGES["1.13"], encoding="utf-8")

    report = check_memory(path)

    assert report.hypotheses[0].cause == "fragmentation"
    assert report.at_a_glance.fix.startswith("Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")
    assert report.next_step is not None
    assert report.next_step.arguments == {"id": "fragmentation"}
