"""`collective_timeout`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

from dataclasses import replace

from mldebug_mcp.logs.run import Message, Run
from mldebug_mcp.models import State
from tests.runs import run_of, seen, state


def _log(*lines: str) -> Run:
    messages = tuple(Message(10 + number, text, records=5) for number, text in enumerate(lines))
    return replace(run_of(loss=[1.0] * 5), formats=("text",), messages=messages)


TIMEOUT = "[rank3]:[E ProcessGroupNCCL.cpp:616] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8123)"


def test_a_timeout_is_present_and_the_error_before_it_is_told() -> None:
    finding = seen("collective_timeout", _log("KeyError: 'answer'", TIMEOUT))
    assert finding.state is State.PRESENT
    assert finding.values["first_error_line"] == 10
    assert "KeyError" in finding.summary


def test_other_errors_are_absent() -> None:
    assert state("collective_timeout", _log("CUDA out of memory.", "TimeoutError: download")) is State.ABSENT


def test_a_log_of_metrics_only_is_unknown() -> None:
    assert state("collective_timeout", replace(_log(), formats=("jsonl",))) is State.UNKNOWN
