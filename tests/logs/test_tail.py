from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO
from unittest.mock import patch

import numpy as np
import pytest

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs import FollowedRun, LogTail, Run, read_run
from mldebug_mcp.logs import follow as tail_module
from mldebug_mcp.logs.formats import tensorboard, text_log
from mldebug_mcp.logs.log_file import LogFile, whole_lines


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


SAMPLES = Path(__file__).parent / "samples"


def assert_alike(run: Run, expected: Run) -> None:
    assert (run.records, run.kind, run.config) == (expected.records, expected.kind, expected.config)
    assert run.messages == expected.messages
    assert run.notes == expected.notes
    assert run.series.keys() == expected.series.keys()
    for name, series in expected.series.items():
        np.testing.assert_array_equal(run[name].step, series.step, err_msg=name)
        np.testing.assert_array_equal(run[name].value, series.value, err_msg=name)
    assert len(run.segments) == len(expected.segments)


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("*.log")), ids=lambda path: path.stem)
def test_a_growing_text_log_reads_at_each_moment_as_its_whole_lines_do(sample: Path, tmp_path: Path) -> None:
    content = sample.read_bytes().removesuffix(b"\n") + b"\n"
    growing, whole = tmp_path / "growing.log", tmp_path / "whole.log"
    tail = LogTail(growing)
    for end in (len(content) // 3, len(content) // 2, len(content) - 2, len(content)):
        with growing.open("ab") as file:
            file.write(content[file.tell() : end])
        lines = whole_lines(content[:end])
        whole.write_bytes(lines or b"\n")
        try:
            expected = read_run(whole)
        except InputError:
            with pytest.raises(InputError):
                tail.read()
            continue
        assert_alike(tail.read(), expected)
        assert tail.position == len(lines)


def test_a_progress_bar_that_is_redrawn_in_place_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"\r 10%|#  | 1/10 [00:01<00:09, loss=3]\r 20%|## | 2/10 [00:02<00:08, loss=2]")
    tail = LogTail(path)
    assert tail.read()["loss"].value.tolist() == [3]
    with path.open("ab") as file:
        file.write(b"\r 30%|###| 3/10 [00:03<00:07, loss=1]\r")
    assert tail.read()["loss"].value.tolist() == [3, 2]


def test_only_what_was_added_to_a_text_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    append(path, "".join(f"step {step}: loss {4 - step / 100:.2f}\n" for step in range(300)))
    tail = LogTail(path)
    tail.read()
    append(path, "step 300: loss 0.50\nstep 301: lo")
    with patch.object(text_log.Text, "take_block", autospec=True, side_effect=text_log.Text.take_block) as taken:
        run = tail.read()
    assert [call.args[1] for call in taken.call_args_list] == [b"step 300: loss 0.50\n"]
    assert run["loss"].value[-2:].tolist() == [1.01, 0.5]
    assert len(run["loss"]) == 301


def test_a_log_whose_format_shows_only_later_is_read_in_that_format(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    append(path, "loading the data\nstep 1: lm loss 3.5\n")
    tail = LogTail(path)
    assert tail.read().formats == ("text",)
    line = " iteration {0}/ 100 | consumed samples: 8 | elapsed time per iteration (ms): 22.5 | lm loss: {0}.5E+00 |\n"
    append(path, line.format(1) + line.format(2))
    run = tail.read()
    assert run.formats == ("text", "megatron")
    assert run["loss"].value.tolist() == [1.5, 2.5]


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("events.out.tfevents.*")), ids=lambda path: path.suffix)
def test_a_growing_event_file_reads_at_each_moment_as_its_whole_records_do(sample: Path, tmp_path: Path) -> None:
    content = sample.read_bytes()
    growing, cut = tmp_path / sample.name, tmp_path / f"cut.{sample.name}"
    tail = LogTail(growing)
    for end in [*range(len(content) // 2, len(content), 97), len(content)]:
        with growing.open("ab") as file:
            file.write(content[file.tell() : end])
        cut.write_bytes(content[:end])
        expected, run = read_run(cut), tail.read()
        assert_alike(run, replace(expected, notes=tuple(note for note in expected.notes if "cut off" not in note)))
    assert tail.position == len(content)


def test_only_what_was_added_to_an_event_file_is_read(tmp_path: Path) -> None:
    content = (SAMPLES / "events.out.tfevents.simple").read_bytes()
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(content[:-100])
    tail = LogTail(path)
    tail.read()
    before = tail.position
    path.write_bytes(content)
    events = tensorboard.EventFile
    with patch.object(events, "take", autospec=True, side_effect=events.take) as taken:
        tail.read()
    assert len(taken.call_args_list[0].args[1]) == len(content) - before < len(content) / 2


@pytest.mark.parametrize("replacement", ["step 1: loss 9\n", "step 1: loss 9\n" * 9])
def test_a_text_log_that_was_written_anew_is_begun_anew_and_says_so(replacement: str, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    append(path, "step 1: loss 3\nstep 2: loss 2\nstep 3: loss 1\n")
    tail = LogTail(path)
    assert not any("written anew" in note for note in tail.read().notes)
    path.write_text(replacement)
    run = tail.read()
    assert set(run["loss"].value.tolist()) == {9}
    assert any("written anew 1 time(s)" in note for note in run.notes)


def test_a_log_that_was_emptied_is_begun_anew_even_if_it_begins_alike(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    append(path, '{"step": 1, "loss": 3}\n')
    tail = LogTail(path)
    tail.read()
    path.write_text("")
    with pytest.raises(InputError, match="the file is empty"):
        tail.read()
    append(path, '{"step": 1, "loss": 3}\n{"step": 2, "loss": 2}\n')
    run = tail.read()
    assert run["loss"].value.tolist() == [3, 2]
    assert any("written anew" in note for note in run.notes)


def test_an_event_file_that_was_replaced_is_begun_anew_and_says_so(tmp_path: Path) -> None:
    path, other = tmp_path / "events.out.tfevents.1", tmp_path / "other"
    path.write_bytes((SAMPLES / "events.out.tfevents.simple").read_bytes())
    tail = LogTail(path)
    first = tail.read()
    other.write_bytes((SAMPLES / "events.out.tfevents.tensor").read_bytes())
    other.rename(path)
    run = tail.read()
    assert run.records == read_run(path).records
    assert any("replaced" in note for note in run.notes)
    assert not any("replaced" in note for note in first.notes)


def test_a_line_that_is_too_long_is_left_out_however_it_arrives(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    append(path, '{"step": 1, "loss": 3}\n{"step": 2, "text": "' + "x" * 3000)
    with patch.object(tail_module, "BLOCK_BYTES", 1000):
        tail = LogTail(path)
        tail.read()
        append(path, "x" * 3000 + '", "loss": 5}\n{"step": 3, "loss": 1}\n')
        run = tail.read()
    assert run["loss"].value.tolist() == [3, 1]
    assert any("skipped 1 line(s)" in note for note in run.notes)


def test_a_run_that_was_read_stays_as_it_was_while_the_log_grows(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    tail, runs = LogTail(path), []
    for size in range(1, 40):
        append(path, "".join(f'{{"step": {step}, "loss": {step}}}\n' for step in range(size * 10, size * 10 + 10)))
        runs.append(tail.read())
    for size, run in enumerate(runs, start=1):
        assert run["loss"].value.tolist() == list(range(10, size * 10 + 10))


def test_a_growing_log_whose_numbers_turn_out_to_have_decimal_commas_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    append(path, "Epoch 1: loss: 2,5\n")
    tail = LogTail(path)
    tail.read()
    append(path, "Epoch 2: loss: 0,75\nEpoch 3: loss: 0,5\n")
    grown = tail.read()
    assert grown["loss"].value.tolist() == [2.5, 0.75, 0.5]
    assert tail.read() is grown


def test_a_folder_that_is_watched_is_read_on_where_it_grew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    still = tmp_path / "eval.csv"
    still.write_text("step,eval_loss\n10,3.1\n20,3.0\n30,2.9\n")
    growing = tmp_path / "train.log"
    growing.write_text("".join(f"step {step}: loss {4 - step / 100:.2f}\n" for step in range(10, 60, 10)))
    (tmp_path / "config.json").write_text('{"learning_rate": 0.125, "max_steps": 100}')
    tail = FollowedRun(tmp_path)
    first = tail.read()
    assert (first["loss"].step.tolist(), first["eval_loss"].step.tolist()) == ([10, 20, 30, 40, 50], [10, 20, 30])
    stream = LogFile.stream
    with growing.open("a") as log:
        log.write("step 60: loss 3.40\n")

    def opened(file: LogFile) -> BinaryIO:
        assert file.path.name != "eval.csv", "what has not changed is read again"
        return stream(file)

    monkeypatch.setattr(LogFile, "stream", opened)
    second = tail.read()
    monkeypatch.undo()
    assert second["loss"].step.tolist() == [10, 20, 30, 40, 50, 60]
    assert second.setting("learning_rate") == 0.125
    assert read_run(tmp_path)["loss"].value.tolist() == second["loss"].value.tolist()
