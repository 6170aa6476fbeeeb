from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mldebug_mcp import diagnose_run
from mldebug_mcp.logs.endings import is_error
from mldebug_mcp.logs.run import Message, Run
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


def _log(*lines: str) -> Run:
    messages = tuple(Message(10 + number, text, records=5) for number, text in enumerate(lines))
    return replace(run_of(loss=[1.0] * 5), formats=("text",), messages=messages)


def test_a_failed_allocation_is_present_with_its_line() -> None:
    finding = seen("out_of_memory_error", _log("ValueError: x", "torch.OutOfMemoryError: CUDA out of memory."))
    assert finding.state is State.PRESENT
    assert finding.values["line"] == 11


def test_another_error_is_absent_and_without_any_the_kind_is_unknown() -> None:
    assert state("out_of_memory_error", _log("NCCL error: unhandled system error")) is State.ABSENT
    assert state("out_of_memory_error", _log()) is State.UNKNOWN


def test_an_allocation_that_failed_before_training_went_on_is_a_remark() -> None:
    early = Message(4, "torch.OutOfMemoryError: CUDA out of memory.", records=1)
    finding = seen("error_message", replace(_log(), messages=(early,)))
    assert finding.state is State.ABSENT
    assert "training went on after it" in finding.summary


def test_a_log_of_metrics_only_is_unknown_of_out_of_memory_error() -> None:
    assert state("out_of_memory_error", replace(_log(), formats=("jsonl",))) is State.UNKNOWN


def test_a_process_that_the_kernel_killed_for_its_memory_is_seen_in_a_log(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    records = "".join(f"step {step}: loss {2 - step / 100:.3f}\n" for step in range(1, 60))
    for last_words in (
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.batch. Some processes may have been killed.\n",
        "worker.api: [ERROR] failed (exitcode: -9) local_rank: 1 (pid: 99) of binary: python3\n",
    ):
        log.write_text(records + last_words, encoding="utf-8")
        leading = {one.cause for one in diagnose_run(log).hypotheses[:2]}
        assert leading == {"out_of_memory", "memory_leak"}


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


def test_a_log_of_metrics_only_is_unknown_of_memory_reserved_unused() -> None:
    assert state("memory_reserved_unused", replace(_log(), formats=("jsonl",))) is State.UNKNOWN


FAULT = "NVRM: Xid (PCI:0000:3b:00): 48, An uncorrectable double bit error (DBE) has been detected"


def test_a_fault_that_the_driver_reports_is_present() -> None:
    finding = seen("device_error", _log(FAULT))
    assert finding.state is State.PRESENT
    assert "Xid" in finding.summary


def test_an_assertion_of_the_program_on_the_device_is_absent() -> None:
    assert state("device_error", _log("RuntimeError: CUDA error: device-side assert triggered")) is State.ABSENT


def test_an_xid_of_the_programs_own_work_is_absent() -> None:
    assert state("device_error", _log("NVRM: Xid (PCI:0000:3b:00): 31, pid=42, MMU Fault")) is State.ABSENT


def test_a_log_of_metrics_only_is_unknown_of_device_error() -> None:
    assert state("device_error", replace(_log(), formats=("jsonl",))) is State.UNKNOWN


TIMEOUT = "[rank3]:[E ProcessGroupNCCL.cpp:616] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8123)"


def test_a_timeout_is_present_and_the_error_before_it_is_told() -> None:
    finding = seen("collective_timeout", _log("KeyError: 'answer'", TIMEOUT))
    assert finding.state is State.PRESENT
    assert finding.values["first_error_line"] == 10
    assert "KeyError" in finding.summary


def test_other_errors_are_absent() -> None:
    assert state("collective_timeout", _log("CUDA out of memory.", "TimeoutError: download")) is State.ABSENT


def test_a_log_of_metrics_only_is_unknown_of_collective_timeout() -> None:
    assert state("collective_timeout", replace(_log(), formats=("jsonl",))) is State.UNKNOWN


TEXT_ENDS_IN_ERROR = replace(run_of(loss=[1.0] * 50), formats=("text",))
UNKNOWN_ERROR = "TypeError: unsupported format string passed to tuple.__format__"


def test_an_exception_at_the_end_is_present_with_its_line() -> None:
    finding = seen("ends_in_error", replace(TEXT_ENDS_IN_ERROR, messages=(Message(812, UNKNOWN_ERROR, 50),)))
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
    crashed = replace(TEXT_ENDS_IN_ERROR, messages=(Message(812, line, 50),))
    assert state("ends_in_error", crashed) in (State.PRESENT, State.UNKNOWN)
    assert is_error(line)


def test_an_exception_that_training_went_on_after_is_absent() -> None:
    assert (
        state("ends_in_error", replace(TEXT_ENDS_IN_ERROR, messages=(Message(12, UNKNOWN_ERROR, 10),))) is State.ABSENT
    )


def test_an_interruption_by_the_user_is_absent() -> None:
    interrupted = (Message(900, "Traceback (most recent call last):", 50),)
    assert state("ends_in_error", replace(TEXT_ENDS_IN_ERROR, messages=interrupted)) is State.ABSENT


def test_a_known_message_says_more() -> None:
    known = Message(900, "RuntimeError: CUDA error: device-side assert triggered", 50)
    assert state("ends_in_error", replace(TEXT_ENDS_IN_ERROR, messages=(known,))) is State.UNKNOWN


@pytest.mark.parametrize(("formats", "answer"), [(("text",), State.ABSENT), (("jsonl",), State.UNKNOWN)])
def test_without_messages_a_text_has_none_and_a_log_of_metrics_cannot_tell(
    formats: tuple[str, ...], answer: State
) -> None:
    assert state("ends_in_error", replace(TEXT_ENDS_IN_ERROR, formats=formats)) is answer


def test_memory_that_is_free_in_spite_of_a_failed_allocation_is_present() -> None:
    free = SCATTERED.replace("0.9 GiB free; 21.80 GiB", "6.3 GiB free; 12.20 GiB")
    assert state("memory_reserved_unused", _log(free)) is State.PRESENT
    assert state("memory_reserved_unused", _log(free + " 12.20 GiB allowed;")) is State.ABSENT


def test_a_fault_without_a_name_is_one_of_the_device() -> None:
    assert state("device_error", _log("  what():  CUDA error: unknown error")) is State.PRESENT
    assert is_error("[default3]:  what():  CUDA error: unknown error")


@pytest.mark.parametrize(
    "line",
    [
        "Loss.cu:250: block: [0,0,0], thread: [4,0,0] Assertion `t >= 0 && t < n_classes` failed.",
        "IndexError: Target 10 is out of bounds.",
        "InvalidArgumentError: Received a label value of 32 which is outside the valid range of [0, 11).",
        "ValueError: Invalid classes inferred from unique values of `y`.  Expected: [0 1 2], got [1 2 3]",
    ],
)
def test_a_label_outside_the_classes_is_told_with_its_line(line: str) -> None:
    assert seen("label_out_of_range_error", _log(line)).values["line"] == 10


@pytest.mark.parametrize(
    "line",
    ["RuntimeError: CUDA error: device-side assert triggered", "IndexError: index out of range in self"],
)
def test_an_index_that_may_be_no_label_is_no_label_out_of_range(line: str) -> None:
    assert state("label_out_of_range_error", _log(line)) is State.ABSENT
