"""`out_of_memory_error`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

from dataclasses import replace

from mldebug_mcp.logs.run import Message, Run
from mldebug_mcp.models import State
from tests.runs import run_of, seen, state


def _log(*lines: str) -> Run:
    messages = tuple(Message(10 + number, text) for number, text in enumerate(lines))
    return replace(run_of(loss=[1.0] * 5), formats=("text",), messages=messages)


def test_a_failed_allocation_is_present_with_its_line() -> None:
    finding = seen("out_of_memory_error", _log("ValueError: x", "torch.OutOfMemoryError: CUDA out of memory."))
    assert finding.state is State.PRESENT
    assert finding.values["line"] == 11


def test_other_errors_and_none_at_all_are_absent() -> None:
    assert state("out_of_memory_error", _log("NCCL error: unhandled system error")) is State.ABSENT
    assert state("out_of_memory_error", _log()) is State.ABSENT


def test_a_log_of_metrics_only_is_unknown() -> None:
    assert state("out_of_memory_error", replace(_log(), formats=("jsonl",))) is State.UNKNOWN
