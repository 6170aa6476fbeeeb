"""`memory_reserved_unused`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mldebug_mcp.logs.run import Message, Run
from mldebug_mcp.models import State
from tests.runs import run_of, seen, state


def _log(*lines: str) -> Run:
    messages = tuple(Message(10 + number, text, records=5) for number, text in enumerate(lines))
    return replace(run_of(loss=[1.0] * 5), formats=("text",), messages=messages)


FULL = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB. "
    "Of the allocated memory 77.50 GiB is allocated by PyTorch, and 300.00 MiB is reserved by PyTorch but unallocated."
)
SCATTERED = (
    "RuntimeError: CUDA out of memory. Tried to allocate 1.30 GiB (GPU 0; 23.69 GiB total capacity; 12.10 GiB already "
    "allocated; 0.9 GiB free; 21.80 GiB reserved in total by PyTorch)"
)


def test_more_unused_than_was_asked_for_is_present_in_numbers() -> None:
    finding = seen("memory_reserved_unused", _log(SCATTERED))
    assert finding.state is State.PRESENT
    assert finding.values["requested_bytes"] == pytest.approx(1.3 * 2**30)
    assert finding.values["unused_bytes"] == pytest.approx(9.7 * 2**30)


def test_memory_that_is_really_full_is_absent() -> None:
    assert state("memory_reserved_unused", _log(FULL)) is State.ABSENT
    assert state("memory_reserved_unused", _log(FULL.replace("2.00 GiB", "20.00 MiB"))) is State.ABSENT


def test_a_message_without_sizes_is_unknown() -> None:
    assert state("memory_reserved_unused", _log("RuntimeError: CUDA out of memory.")) is State.UNKNOWN
    assert state("memory_reserved_unused", _log("CUDA out of memory. Tried to allocate 2.00 GiB.")) is State.UNKNOWN


def test_a_log_of_metrics_only_is_unknown() -> None:
    assert state("memory_reserved_unused", replace(_log(), formats=("jsonl",))) is State.UNKNOWN
