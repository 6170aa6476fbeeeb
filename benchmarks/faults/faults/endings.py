"""Runs that end: with an error, without a word, or as planned. The training before is real, the last words are quoted.

The texts are those that PyTorch, NCCL, the driver and the kernel print; only numbers and paths are made up.
"""

from __future__ import annotations

from benchmarks.faults.faults.fault import Fault
from benchmarks.faults.loop import Setup

TASKS = ("gpt", "sft", "tabular", "images")

CUDA_OUT_OF_MEMORY = """\
Traceback (most recent call last):
  File "train.py", line 214, in <module>
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried} GiB. GPU 0 has a total capacity of 79.15 GiB \
of which {free} GiB is free. Including non-PyTorch memory, this process has {used} GiB memory in use. Of the allocated \
memory {allocated} GiB is allocated by PyTorch, and {reserved} GiB is reserved by PyTorch but unallocated. If reserved \
but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  \
See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)
"""
FULL = CUDA_OUT_OF_MEMORY.format(tried="2.00", free="1.12", used="78.02", allocated="76.31", reserved="0.94")
SCATTERED = CUDA_OUT_OF_MEMORY.format(tried="2.00", free="1.12", used="78.02", allocated="51.86", reserved="25.33")
OUT_OF_MEMORY = (
    FULL,
    """\
[2025-03-11 04:12:09,514] torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: -9) local_rank: 0 \
(pid: 31337) of binary: /usr/bin/python3
slurmstepd: error: Detected 1 oom-kill event(s) in StepId=48211.0. Some of your processes may have been killed by the \
cgroup out-of-memory handler.
""",
    """\
RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to \
allocate 68719476736 bytes. Error code 12 (Cannot allocate memory)
""",
)
HANG = (
    "",
    """\
[rank3]:[E311 04:12:09.514 ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog caught collective operation timeout: \
WorkNCCL(SeqNum=2801, OpType=ALLREDUCE, NumelIn=524288, NumelOut=524288, Timeout(ms)=600000) ran for 600029 \
milliseconds before timing out.
[rank3]:[E311 04:12:09.618 ProcessGroupNCCL.cpp:681] [Rank 3] Some NCCL operations have failed or timed out. Due to \
the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.
""",
)
HARDWARE = (
    """\
NVRM: Xid (PCI:0000:4b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
RuntimeError: CUDA error: unspecified launch failure
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
""",
    """\
NVRM: Xid (PCI:0000:07:00): 48, pid=31337, name=python, An uncorrectable double bit error (DBE) has been detected on \
GPU in the framebuffer at partition 6, subpartition 0.
RuntimeError: CUDA error: uncorrectable ECC error encountered
""",
)
DONE = "training finished, model saved to out/model.safetensors\n"


def stop(setup: Setup, words: str) -> None:
    """Stop the run somewhere after its middle with these words."""
    setup.ends_at = int(setup.steps * (0.45 + 0.1 * (setup.seed % 4)))
    setup.onset = setup.ends_at
    setup.last_words = words


def out_of_memory(setup: Setup, severity: float) -> None:
    """Fail an allocation: on the device, in the control group, on the host."""
    stop(setup, OUT_OF_MEMORY[int(severity) - 1])


def fragmentation(setup: Setup, _: float) -> None:
    """Fail an allocation while a third of the memory is reserved but unallocated."""
    stop(setup, SCATTERED)


def hang(setup: Setup, severity: float) -> None:
    """Stop without a word, or with the watchdog's."""
    stop(setup, HANG[int(severity) - 1])
    setup.hangs = True


def hardware(setup: Setup, severity: float) -> None:
    """Lose a device, or its memory."""
    stop(setup, HARDWARE[int(severity) - 1])


def complete(setup: Setup, _: float) -> None:
    """Run to the planned end and say so."""
    setup.last_words = DONE


FAULTS = (
    Fault("out_of_memory", "out_of_memory", out_of_memory, (1, 2, 3), TASKS, ("memory_leak",)),
    Fault("scattered_memory", "fragmentation", fragmentation, (1,), TASKS, ("out_of_memory",)),
    # A run that stops without a word may as well have been killed.
    Fault("hang", "hang", hang, (1, 2), TASKS, ("hardware_fault", "out_of_memory")),
    Fault("hardware", "hardware_fault", hardware, (1, 2), TASKS),
)
HEALTHY = (Fault("complete", "healthy", complete, (1,), TASKS),)
