"""Hostile logs, settings, folders and containers are answered or refused, and never hold up who reads them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from benchmarks.fuzz.promises import Cost, metered

from mldebug_mcp.core.errors import MLDebugError
from mldebug_mcp.knowledge.errors import is_fragmented
from mldebug_mcp.server.calls import CALLS
from tests.hostile.new_kinds import KINDS


@pytest.mark.parametrize("name", KINDS)
def test_a_hostile_file_is_answered_or_refused_in_one_line(tmp_path: Path, name: str) -> None:
    tool, arguments = KINDS[name](tmp_path)
    with metered(Cost()):  # stops what takes too long
        said = answer_of(tool, arguments)
    assert re.fullmatch(r"[^\n]{10,2000}", said)


def answer_of(tool: str, arguments: dict[str, Any]) -> str:
    """Return the leading cause that a call answers, or why it is refused."""
    try:
        reply: Any = CALLS[tool](arguments, None)
    except MLDebugError as error:
        return str(error)
    return f"leading cause: {reply['structuredContent']['hypotheses'][0]['cause']}"


def test_digits_without_end_behind_a_message_of_memory_hold_up_no_answer() -> None:
    with metered(Cost()):
        assert not is_fragmented(f"CUDA out of memory. Tried to allocate 2.00 GiB. {'9' * 200_000}")


def test_a_key_without_value_that_goes_on_in_the_next_line_is_read_otherwise_or_left_out(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text("".join(f'{{"step": {step}, "loss": 1.5}}\n' for step in range(1, 9)))
    (tmp_path / "args.txt").write_text("[train]\nlr = 0.1\n[DEFAULT]\nepochs \n 3\n[model]\nhidden_size=64\n")
    said = answer_of("diagnose_run", {"path": str(tmp_path)})
    assert said.startswith("leading cause")


@pytest.mark.parametrize("setting", ["lr: {}", "betas: [{}, 0.95]", "optim: {{name: adamw, betas: [{}, 0.95]}}"])
def test_a_setting_that_no_number_can_hold_is_told_as_infinite(tmp_path: Path, setting: str) -> None:
    (tmp_path / "train.jsonl").write_text("".join(f'{{"step": {step}, "loss": 1.5}}\n' for step in range(1, 9)))
    (tmp_path / "args.yaml").write_text("epochs: 3\n" + setting.format("9" * 400) + "\n")
    said = answer_of("diagnose_run", {"path": str(tmp_path)})
    assert said.startswith("leading cause")
