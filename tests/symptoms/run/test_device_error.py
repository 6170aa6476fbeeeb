"""`device_error`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

from dataclasses import replace

from mldebug_mcp.logs.run import Message, Run
from mldebug_mcp.models import State
from tests.runs import run_of, seen, state


def _log(*lines: str) -> Run:
    messages = tuple(Message(10 + number, text, records=5) for number, text in enumerate(lines))
    return replace(run_of(loss=[1.0] * 5), formats=("text",), messages=messages)


FAULT = "NVRM: Xid (PCI:0000:3b:00): 48, An uncorrectable double bit error (DBE) has been detected"


def test_a_fault_that_the_driver_reports_is_present() -> None:
    finding = seen("device_error", _log(FAULT))
    assert finding.state is State.PRESENT
    assert "Xid" in finding.summary


def test_an_assertion_of_the_program_on_the_device_is_absent() -> None:
    assert state("device_error", _log("RuntimeError: CUDA error: device-side assert triggered")) is State.ABSENT


def test_an_xid_of_the_programs_own_work_is_absent() -> None:
    assert state("device_error", _log("NVRM: Xid (PCI:0000:3b:00): 31, pid=42, MMU Fault")) is State.ABSENT


def test_a_log_of_metrics_only_is_unknown() -> None:
    assert state("device_error", replace(_log(), formats=("jsonl",))) is State.UNKNOWN
