from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp.errors import InputError
from mldebug_mcp.logs import LogTail, read_run


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_a_growing_log_is_read_on_from_where_the_last_read_ended(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    append(path, '{"step": 1, "loss": 3}\n{"step": 2, "lo')
    tail = LogTail(path)
    assert tail.read()["loss"].value.tolist() == [3]
    assert tail.position == 23
    append(path, 'ss": 2}\n{"step": 3, "loss": NaN}\nrubbish\n')
    grown = tail.read()
    assert grown["loss"].step.tolist() == [1, 2, 3]
    assert math.isnan(grown["loss"].value[-1])
    assert tail.position == path.stat().st_size
    assert tail.read() is grown


def test_reading_bit_by_bit_gives_what_reading_at_once_gives(tmp_path: Path) -> None:
    whole = tmp_path / "whole.csv"
    steps = [*range(50), *range(30, 90)]  # resumed from a checkpoint
    whole.write_text(
        "# made by a test\nstep,loss,acc\n" + "".join(f"{step},{1 / (step + 1)},{step}%\n" for step in steps)
    )
    part = tmp_path / "part.csv"
    part.write_bytes(whole.read_bytes()[:60])
    tail = LogTail(part)
    tail.read()
    text = whole.read_text()
    for at in range(60, len(text), 7):
        append(part, text[at : at + 7])
        run = tail.read()
    expected = read_run(whole)
    assert run.notes == expected.notes
    assert len(run.segments) == len(expected.segments) == 2
    for name, series in expected.series.items():
        np.testing.assert_array_equal(run[name].step, series.step)
        np.testing.assert_array_equal(run[name].value, series.value)


def test_a_format_without_lines_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    path.write_text('{"log_history": [{"step": 1, "loss": 3}]}')
    tail = LogTail(path)
    assert len(tail.read()["loss"]) == 1
    path.write_text('{"log_history": [{"step": 1, "loss": 3}, {"step": 2, "loss": 2}]}')
    assert len(tail.read()["loss"]) == 2


def test_a_file_that_was_replaced_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    append(path, '{"step": 1, "loss": 3}\n{"step": 2, "loss": 3}\n')
    tail = LogTail(path)
    tail.read()
    path.write_text('{"step": 1, "loss": 9}\n')
    assert tail.read()["loss"].value.tolist() == [9]


def test_a_log_without_a_whole_record_yet_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    append(path, '{"step": 1, "loss"')
    with pytest.raises(InputError, match="no metrics in it yet"):
        LogTail(path).read()


def test_the_configuration_beside_a_growing_log_is_known(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"learning_rate": 0.01}')
    append(tmp_path / "log.jsonl", '{"step": 1, "loss": 3}\n')
    assert LogTail(tmp_path / "log.jsonl").read().setting("learning_rate") == 0.01
