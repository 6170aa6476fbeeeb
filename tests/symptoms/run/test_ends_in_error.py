"""`ends_in_error`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mldebug_mcp.logs.error_lines import is_error
from mldebug_mcp.logs.run import Message
from mldebug_mcp.models import State
from tests.runs import run_of, seen, state

TEXT = replace(run_of(loss=[1.0] * 50), formats=("text",))
UNKNOWN_ERROR = "TypeError: unsupported format string passed to tuple.__format__"


def test_an_exception_at_the_end_is_present_with_its_line() -> None:
    finding = seen("ends_in_error", replace(TEXT, messages=(Message(812, UNKNOWN_ERROR, 50),)))
    assert finding.state is State.PRESENT
    assert finding.values["line"] == 812
    assert "tuple.__format__" in finding.summary


@pytest.mark.parametrize(
    "line",
    [
        "AssertionError",
        "optimlib.exceptions.NoProgress: stopped",
        "terminate called after throwing an instance of 'zeta::error'",
        "Aborted (core dumped)",
        "Error executing job with overrides: ['exp=a']",
        'FileNotFoundError  File "resume.py", line 14, in load',
        "command terminated with exit code 137",
        "2025-10-31 03:11:02,475 - trainer - INFO - [rank7]: AssertionError      ",
        "[E socket.cpp:472] [c10d] The server socket has failed to listen on any local network address.",
    ],
)
def test_a_crash_in_other_words_is_present(line: str) -> None:
    crashed = replace(TEXT, messages=(Message(812, line, 50),))
    assert state("ends_in_error", crashed) in (State.PRESENT, State.UNKNOWN)
    assert is_error(line)


def test_an_exception_that_training_went_on_after_is_absent() -> None:
    assert state("ends_in_error", replace(TEXT, messages=(Message(12, UNKNOWN_ERROR, 10),))) is State.ABSENT


def test_an_interruption_by_the_user_is_absent() -> None:
    interrupted = (Message(900, "Traceback (most recent call last):", 50),)
    assert state("ends_in_error", replace(TEXT, messages=interrupted)) is State.ABSENT


def test_a_known_message_says_more() -> None:
    known = Message(900, "RuntimeError: CUDA error: device-side assert triggered", 50)
    assert state("ends_in_error", replace(TEXT, messages=(known,))) is State.UNKNOWN


@pytest.mark.parametrize(("formats", "answer"), [(("text",), State.ABSENT), (("jsonl",), State.UNKNOWN)])
def test_without_messages_a_text_has_none_and_a_log_of_metrics_cannot_tell(
    formats: tuple[str, ...], answer: State
) -> None:
    assert state("ends_in_error", replace(TEXT, formats=formats)) is answer
