"""The kinds of error message: each is told from the others, and unknown where a log holds no messages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mldebug_mcp.logs.run import Message, Run
from mldebug_mcp.models import State
from tests.runs import run_of, seen, state

BARE = run_of(loss=[1.0] * 5)
FULL = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB. Of "
    "the allocated memory 77.50 GiB is allocated by PyTorch, and 300.00 MiB is reserved by PyTorch but unallocated."
)
SCATTERED = (
    "RuntimeError: CUDA out of memory. Tried to allocate 1.30 GiB (GPU 0; 23.69 GiB total capacity; 12.10 GiB already "
    "allocated; 0.9 GiB free; 21.80 GiB reserved in total by PyTorch)"
)
TIMEOUT = "[rank3]:[E ProcessGroupNCCL.cpp:616] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8123)"
FAULT = "NVRM: Xid (PCI:0000:3b:00): 48, An uncorrectable double bit error (DBE) has been detected"
KINDS = ("out_of_memory_error", "memory_reserved_unused", "collective_timeout", "device_error")


def _log(*lines: str) -> Run:
    messages = tuple(Message(10 + number, text) for number, text in enumerate(lines))
    return replace(BARE, formats=("text",), messages=messages)


@pytest.mark.parametrize(
    ("line", "present"),
    [
        (FULL, {"out_of_memory_error"}),
        (SCATTERED, {"out_of_memory_error", "memory_reserved_unused"}),
        (TIMEOUT, {"collective_timeout"}),
        (FAULT, {"device_error"}),
        ("ValueError: the data set is empty", set()),
    ],
)
def test_a_message_is_of_its_own_kind_only(line: str, present: set[str]) -> None:
    run = _log(line)
    assert {kind for kind in KINDS if state(kind, run) is State.PRESENT} == present


def test_the_size_of_the_failed_request_and_the_unused_memory_are_told() -> None:
    values = seen("memory_reserved_unused", _log(SCATTERED)).values
    assert values["requested_bytes"] == pytest.approx(1.3 * 2**30)
    assert values["unused_bytes"] == pytest.approx(9.7 * 2**30)


def test_the_error_before_a_timeout_is_told() -> None:
    finding = seen("collective_timeout", _log("KeyError: 'answer'", TIMEOUT))
    assert finding.values["first_error_line"] == 10
    assert "KeyError" in finding.summary


def test_a_message_without_sizes_cannot_be_judged_for_unused_memory() -> None:
    assert state("memory_reserved_unused", _log("RuntimeError: CUDA out of memory.")) is State.UNKNOWN


@pytest.mark.parametrize("kind", KINDS)
def test_a_log_of_metrics_only_is_unknown(kind: str) -> None:
    assert state(kind, replace(BARE, formats=("jsonl",))) is State.UNKNOWN
