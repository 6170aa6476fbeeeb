"""An out-of-memory message that was wrapped over several lines keeps its numbers."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from mldebug_mcp.logs import read_run

RECORDS = [f"step {step} loss {3 - step * 0.01:.2f}" for step in range(1, 60)]
FULL = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which 1.50 GiB is free. Process 42 has 77.00 GiB memory in use. Of the allocated memory 60.00 GiB is allocated "
    "by PyTorch, and 15.00 GiB is reserved by PyTorch but unallocated."
)


def messages(tmp_path: Path, lines: list[str]) -> list[str]:
    log = tmp_path / "train.log"
    log.write_text("\n".join([*RECORDS, *lines]) + "\n", encoding="utf-8")
    return [message.text for message in read_run(log).messages]


@pytest.mark.parametrize(("width", "prefix"), [(60, ""), (80, ""), (100, ""), (70, "[rank3]: ")])
def test_the_lines_of_a_wrapped_message_are_put_together(tmp_path: Path, width: int, prefix: str) -> None:
    wrapped = [prefix + line for line in textwrap.wrap(FULL, width)]
    (text,) = messages(tmp_path, wrapped)
    assert text.removeprefix(prefix) == FULL


def test_a_record_below_a_short_message_stays_a_record(tmp_path: Path) -> None:
    lines = ["CUDA out of memory. Tried to allocate 2.00 GiB, skipping it", "step 60 loss 2.40 memory 12.5 GiB"]
    assert messages(tmp_path, lines) == lines[:1]
    assert read_run(tmp_path / "train.log").records == 60


def test_a_second_message_below_the_first_is_one_of_its_own(tmp_path: Path) -> None:
    lines = ["RuntimeError: CUDA out of memory. Tried to", "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB"]
    assert messages(tmp_path, lines) == lines
