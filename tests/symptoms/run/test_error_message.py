"""`error_message`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

from dataclasses import replace

from mldebug_mcp.logs.run import Message
from mldebug_mcp.models import State
from tests.runs import run_of, seen, state

TEXT = replace(run_of(loss=[1.0] * 5), formats=("text",))


def test_a_known_message_is_present_with_its_line() -> None:
    line = Message(812, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", records=5)
    finding = seen("error_message", replace(TEXT, messages=(Message(3, "ValueError: x"), line)))
    assert finding.state is State.PRESENT
    assert finding.values["line"] == 812
    assert "Tried to allocate" in finding.summary


def test_a_known_message_that_training_went_on_after_is_a_remark() -> None:
    line = Message(812, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", records=1)
    finding = seen("error_message", replace(TEXT, messages=(line,)))
    assert finding.state is State.ABSENT
    assert "line 812" in finding.summary


def test_an_unknown_error_is_a_remark() -> None:
    finding = seen("error_message", replace(TEXT, messages=(Message(3, "ValueError: caught and gone on"),)))
    assert finding.state is State.ABSENT
    assert "line 3" in finding.summary


def test_a_text_log_without_errors_is_absent() -> None:
    assert state("error_message", TEXT) is State.ABSENT


def test_a_log_of_metrics_only_is_unknown() -> None:
    assert state("error_message", replace(TEXT, formats=("jsonl",))) is State.UNKNOWN
