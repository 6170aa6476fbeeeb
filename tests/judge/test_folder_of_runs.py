"""What a folder of runs says of the folder itself and of runs that an error ended."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from mldebug_mcp import diagnose_run
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge.runs import diagnose_runs

KEY_ERROR = (
    'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    x = d["foo"]\nKeyError: \'foo\'\n'
)


def _folder(tmp_path: Path) -> Path:
    """Write a run that goes on, a run that a KeyError ends, and notes that are no log."""
    for name, end in (("goes", ""), ("crash", KEY_ERROR)):
        (tmp_path / name).mkdir()
        lines = "".join(f"step {step}: loss {0.5 + 2 / (1 + step / 9):.4f}\n" for step in range(80))
        (tmp_path / name / "train.log").write_text(lines + end, encoding="utf-8")
    (tmp_path / "notes.txt").write_text("Things to try next week.\n", encoding="utf-8")
    return tmp_path


def test_a_folder_that_holds_runs_and_a_text_is_not_counted_as_a_run(tmp_path: Path) -> None:
    answer = diagnose_runs(_folder(tmp_path))
    assert sorted(row.name for row in answer.rows) == ["crash", "goes"]
    assert any("the folder itself is not counted as a run" in note and "notes.txt" in note for note in answer.notes)


def test_a_run_that_an_error_ended_is_listed_with_its_error_and_counted_once(tmp_path: Path) -> None:
    answer = diagnose_runs(_folder(tmp_path))
    errors = {row.name: row.error for row in answer.rows}
    assert errors == {"crash": "KeyError: 'foo'", "goes": ""}
    glance = answer.at_a_glance
    assert glance is not None
    assert "unclear" not in glance.headline
    assert "1 ended in an error" in glance.headline
    assert any("crash ended in an error at step 79: KeyError: 'foo'" in fact for fact in glance.facts)


def test_the_call_after_a_crash_reads_the_log_of_the_folder_with_its_traceback(tmp_path: Path) -> None:
    folder = _folder(tmp_path) / "crash"
    step = diagnose_run(folder).next_step
    assert step is not None
    assert (step.tool, step.arguments) == ("explain_error", {"text": str(folder / "train.log")})


def test_each_attempt_in_a_log_is_a_run_where_the_log_itself_is_named(tmp_path: Path) -> None:
    log = tmp_path / "train.jsonl"
    good = [0.4 + 2 * 0.97**step for step in range(100)]
    losses = [*good, *good[:60], *[math.nan] * 40]
    rows = [json.dumps({"step": at % 100, "loss": loss}) for at, loss in enumerate(losses)]
    log.write_text("\n".join(rows))
    answer = diagnose_runs(log)
    assert {row.name: row.is_sick for row in answer.rows} == {"attempt 1": False, "attempt 2": True}
    for row in answer.rows:
        assert diagnose_run(log, run=row.name).leader == row.cause


def test_a_log_of_one_run_is_not_judged_as_several_and_the_command_for_it_is_named(tmp_path: Path) -> None:
    log = tmp_path / "train.jsonl"
    log.write_text("".join(f'{{"step": {step}, "loss": {3 - step / 50}}}\n' for step in range(60)))
    with pytest.raises(InputError, match=r"a file of one run; `mldebug-mcp diagnose`"):
        diagnose_runs(log)
