"""`out_of_memory_error`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mldebug_mcp import diagnose_run
from mldebug_mcp.logs.run import Message, Run
from mldebug_mcp.models import State
from tests.runs import run_of, seen, state


def _log(*lines: str) -> Run:
    messages = tuple(Message(10 + number, text, records=5) for number, text in enumerate(lines))
    return replace(run_of(loss=[1.0] * 5), formats=("text",), messages=messages)


def test_a_failed_allocation_is_present_with_its_line() -> None:
    finding = seen("out_of_memory_error", _log("ValueError: x", "torch.OutOfMemoryError: CUDA out of memory."))
    assert finding.state is State.PRESENT
    assert finding.values["line"] == 11


def test_other_errors_and_none_at_all_are_absent() -> None:
    assert state("out_of_memory_error", _log("NCCL error: unhandled system error")) is State.ABSENT
    assert state("out_of_memory_error", _log()) is State.ABSENT


def test_an_allocation_that_failed_before_training_went_on_is_a_remark() -> None:
    early = Message(4, "torch.OutOfMemoryError: CUDA out of memory.", records=1)
    finding = seen("out_of_memory_error", replace(_log(), messages=(early,)))
    assert finding.state is State.ABSENT
    assert "training went on after it" in finding.summary


def test_a_log_of_metrics_only_is_unknown() -> None:
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
