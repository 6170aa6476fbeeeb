"""Large files are read by the block. Here blocks are small, and what comes out is held to reading line by line."""

from __future__ import annotations

import json
import math
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs import Run, log_file, read_run
from mldebug_mcp.logs.formats import frames
from mldebug_mcp.logs.log_file import pieces

NEVER = 1 << 60


def read(path: Path, *, fast: bool) -> Run | str:
    with (
        patch.object(log_file, "FAST_BYTES", 1 if fast else NEVER),
        patch.object(log_file, "BLOCK_BYTES", 2000),
        patch.object(frames, "PIECE_BYTES", 300),
    ):
        try:
            return read_run(path)
        except InputError as error:
            return str(error)


def assert_both_ways_agree(path: Path) -> Run | str:
    fast, slow = read(path, fast=True), read(path, fast=False)
    if isinstance(fast, str) or isinstance(slow, str):
        assert fast == slow
        return fast
    assert fast.records == slow.records
    assert fast.notes == slow.notes
    assert fast.series.keys() == slow.series.keys()
    for name, series in slow.series.items():
        np.testing.assert_array_equal(fast[name].step, series.step, err_msg=name)
        np.testing.assert_array_equal(fast[name].value, series.value, err_msg=name)
    assert len(fast.segments) == len(slow.segments)
    assert fast.messages == slow.messages
    return fast


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


values = st.one_of(
    st.floats(),
    st.integers(-(10**30), 10**30),
    st.none(),
    st.booleans(),
    st.sampled_from(["text", "1.5", "nan", "12%", "1,234", "2026-11-20 09:17:03", "a: b", 'quo"te', "Infinity"]),
    st.lists(st.floats(), max_size=2),
    st.dictionaries(st.sampled_from("ab"), st.one_of(st.floats(), st.none(), st.text(max_size=3)), max_size=2),
)
usual = st.fixed_dictionaries({"step": st.integers(0, 1000), "loss": st.floats()})
odd = st.dictionaries(
    st.sampled_from(["step", "loss", "val_loss", "eval_loss", "top1", "top5", "é"]), values, max_size=5
)
broken = st.sampled_from(
    ["", "  ", "[1, 2]", "5", '{"loss": 1', '{"loss": 1} x', '{"loss": 1}{"loss": 2}', '{"loss": 1, "loss": 2}', "\x00",
     '{"loss" : 3}', '{"loss": 1e999, "step": 3}', '{"loss": 01}', '\t{"loss":2}\r', '{"train_runtime": 5, "loss": 3}',
     '{"loss": 1}\r{"loss": 2}', '{"l\\u006fss": 4}', "{}", '{"loss": -1.7272727272727e-297}']
)  # fmt: skip
lines = st.lists(st.one_of(usual.map(json.dumps), usual.map(json.dumps), odd.map(json.dumps), broken), min_size=1)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=lines, end=st.sampled_from(["\n", "", "\r\n"]))
def test_any_json_lines_read_alike_by_the_block_and_by_the_line(log: Path, text: list[str], end: str) -> None:
    path = log.with_suffix(".jsonl")
    path.write_text('{"step": 0, "loss": 1.0}\n' + "\n".join(text) + end, encoding="utf-8", newline="")
    assert_both_ways_agree(path)


def test_a_long_log_with_evaluations_nan_and_a_cut_off_end_reads_alike(log: Path) -> None:
    path = log.with_suffix(".jsonl")
    with path.open("w") as file:
        for step in range(1000):
            record: dict[str, object] = {
                "step": step,
                "time": f"2026-11-20 09:{step % 60}",
                "train": {"loss": 1 / (step + 1)},
            }
            if step % 50 == 49:
                record = {"step": step, "val_loss": 2.0, "ok": True}
            if step > 900:
                record["grad_norm"] = [math.nan, math.inf, -math.inf][step % 3]
            file.write(json.dumps(record) + "\n")
        file.write('{"step": 1000, "tr')
    run = assert_both_ways_agree(path)
    assert isinstance(run, Run)
    assert len(run["eval_loss"]) == 20
    assert len(run["loss"]) == 980
    assert run.records == 1000
    assert any("cut off" in note for note in run.notes)


def test_a_broken_line_before_lines_that_are_read_by_the_block_is_not_the_last(log: Path) -> None:
    path = log.with_suffix(".jsonl")
    lines = [f'{{"step": {step}, "loss": 0.1234567890123}}' for step in range(20)]
    for at in range(1, 20):
        path.write_text("\n".join([*lines[:at], "[1, 2]", *lines[at:]]) + "\n")
        run = assert_both_ways_agree(path)
        assert isinstance(run, Run)
        assert run.notes == ("skipped 1 line(s) that are not JSON objects",)


def test_blocks_are_really_read_by_the_block(log: Path) -> None:
    path = log.with_suffix(".jsonl")
    path.write_text("".join(f'{{"step": {step}, "loss": {1 / (step + 1)}}}\n' for step in range(500)))
    with patch("mldebug_mcp.logs.formats.json_records.parse_json", side_effect=[{}]):  # once, to know the format
        run = read(path, fast=True)
    assert isinstance(run, Run)
    assert run["loss"].value.tolist() == [1 / (step + 1) for step in range(500)]


def test_a_key_that_only_appears_late_is_learned_by_the_block(log: Path) -> None:
    path = log.with_suffix(".jsonl")
    lines = [f'{{"step": {step}, "loss": 1.5}}' for step in range(500)]
    lines[400] = '{"step": 400, "eval": {"loss": 2.5}}'
    path.write_text("\n".join(lines) + "\n")
    with patch("mldebug_mcp.logs.formats.json_records.parse_json", side_effect=[{}]):  # once, to know the format
        run = read(path, fast=True)
    assert isinstance(run, Run)
    assert len(run["loss"]) == 499
    assert run["eval_loss"].value.tolist() == [2.5]


def test_metrics_keep_the_order_of_a_log_however_many_they_are(log: Path) -> None:
    path = log.with_suffix(".jsonl")
    names = [f"metric{number * 37 % 100}" for number in range(100)]
    path.write_text("".join(json.dumps({"step": step} | dict.fromkeys(names, 1.5)) + "\n" for step in range(50)))
    run = assert_both_ways_agree(path)
    assert isinstance(run, Run)
    assert list(run.series) == names


def test_a_last_record_without_a_line_end_is_read_once(log: Path) -> None:
    path = log.with_suffix(".jsonl")
    path.write_text("\n".join(f'{{"step": {step}, "loss": 1.5}}' for step in range(500)))
    run = assert_both_ways_agree(path)
    assert isinstance(run, Run)
    assert (run.records, len(run["loss"])) == (500, 500)


cells = st.one_of(
    st.floats().map(str),
    st.integers(-1000, 10**20).map(str),
    st.sampled_from(
        ["", " ", "nan", "None", "NA", "-", "5%", " 1.5 ", "train", "true", "1e999", "1_0", "0x1", "+.5", "1."]
    ),
)
rows = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 99).map(str), st.floats().map(str), st.just("train")).map(list),
        st.lists(cells, min_size=1, max_size=4),
        st.just(["step", "loss", "split"]),
        st.just([""]),
        st.just(['"1"', '"a\nb"', "c"]),
    ),
    max_size=40,
)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=rows, delimiter=st.sampled_from(",;\t"), end=st.sampled_from(["\n", "\r\n"]), last=st.booleans())
def test_any_table_reads_alike_by_the_block_and_by_the_row(
    log: Path, table: list[list[str]], delimiter: str, end: str, last: bool
) -> None:
    path = log.with_suffix(".csv")
    whole = [["step", "loss", "split"], ["0", "1.5", "train"], ["1", "1.4", "train"], *table]
    path.write_text(end.join(delimiter.join(row) for row in whole) + end * last, newline="")
    assert_both_ways_agree(path)


def megatron_line(step: int, loss: str, extra: str = "") -> str:
    return (
        f" iteration {step:8d}/    1000 | consumed samples: {step * 8:12d} | elapsed time per iteration (ms): 22.5 | "
        f"learning rate: 1.000E-04 | lm loss: {loss} | {extra}number of nan iterations:   0 |"
    )


megatron = st.lists(
    st.one_of(
        st.builds(megatron_line, st.integers(0, 1000), st.sampled_from(["1.5E+00", "nan", "inf", "-", "2"])),
        st.builds(megatron_line, st.integers(0, 1000), st.just("1.5"), st.sampled_from(["grad norm: 2.5 | ", "x | "])),
        st.sampled_from(
            [
                " validation loss at iteration 7 | lm loss value: 2.5E+00 | lm loss PPL: 1.2E+01 | ",
                "-" * 40,
                "",
                "a | b",
                "time (ms) | forward: 1.5 | backward: 2",
                "RuntimeError: CUDA out of memory",
                " iteration 3/ 9 | lm loss: 3",
                "x iteration 5/ 9 | lm loss: 4 | y iteration 6/ 9 | lm loss: 5 |",
                "\x1b[31m iteration 8/ 9 | lm loss: 1 |",
            ]
        ),
    ),
    max_size=40,
)


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=megatron, last=st.booleans())
def test_any_megatron_log_reads_alike_by_the_block_and_by_the_line(log: Path, text: list[str], last: bool) -> None:
    log.write_text("\n".join([megatron_line(1, "2.5E+00"), *text]) + "\n" * last)
    run = assert_both_ways_agree(log)
    assert isinstance(run, Run)
    assert run.formats == ("text", "megatron")


def test_megatron_lines_give_loss_validation_and_errors(log: Path) -> None:
    text = [megatron_line(step, f"{10 / step:.6E}", "grad norm: 1.500 | ") for step in range(1, 201)]
    text.insert(100, " validation loss at iteration 100 | lm loss value: 1.250000E-01 | lm loss PPL: 1.133148E+00 | ")
    text.append("torch.OutOfMemoryError: CUDA out of memory.")
    log.write_text("\n".join(text) + "\n")
    run = assert_both_ways_agree(log)
    assert isinstance(run, Run)
    assert run["loss"].value.tolist() == pytest.approx([10 / step for step in range(1, 201)], rel=1e-6)
    assert run["eval_loss"].step.tolist() == [100]
    assert run["eval_loss"].value.tolist() == [0.125]
    assert run["step_time"].value[0] == pytest.approx(0.0225) or run["step_time"].value[0] == 22.5
    assert [(message.line, message.text[:11]) for message in run.messages] == [(202, "torch.OutOf")]


def test_a_line_longer_than_a_block_is_left_out_and_told(log: Path) -> None:
    path = log.with_suffix(".jsonl")
    long = json.dumps({"step": 2, "text": "x" * 5000})
    path.write_text(f'{{"step": 1, "loss": 2}}\n{long}\n{{"step": 3, "loss": 1}}\n')
    run = read(path, fast=True)
    assert isinstance(run, Run)
    assert run["loss"].value.tolist() == [2, 1]
    assert any("skipped 1 line(s) of more than" in note for note in run.notes)


def test_pieces_put_together_are_the_block() -> None:
    block = b"".join(b"x" * size + b"\n" for size in range(50)) + b"rest"
    assert b"".join(pieces(block, 100)) == block
    assert all(piece.endswith(b"\n") for piece in list(pieces(block, 100))[:-1])


def test_a_megatron_line_that_is_still_being_written_loses_the_value_it_ends_in(log: Path) -> None:
    log.write_text(megatron_line(1, "2.5E+00") + "\n iteration 2/ 9 | consumed samples: 16 | lm loss: 2.")
    run = assert_both_ways_agree(log)
    assert isinstance(run, Run)
    assert run["loss"].value.tolist() == [2.5]
    assert run["consumed samples"].value.tolist() == [8]


def test_what_a_structured_log_says_reads_alike(log: Path) -> None:
    path = log.with_suffix(".jsonl")
    rows: list[dict[str, object]] = [{"step": step, "loss": 1 / (step + 1)} for step in range(500)]
    rows[400] = {"step": 400, "level": "error", "message": "ValueError: Attempting to unscale FP16 gradients."}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run = assert_both_ways_agree(path)
    assert not isinstance(run, str)
    assert [message.line for message in run.messages] == [401]


@pytest.mark.parametrize(
    "text", ["INFO", "finished inference", "memory 8.2 GB", "nan", "-inf", "np.float32(2.5)", "1.5f-4"]
)
def test_texts_of_each_record_do_not_change_how_a_log_is_read(log: Path, text: str) -> None:
    path = log.with_suffix(".jsonl")
    rows = [{"step": step, "loss": 1 / (step + 1), "level": text, "message": text} for step in range(300)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert_both_ways_agree(path)


@pytest.mark.parametrize("text", ["INFO", "finished inference", "memory 8.2 GB"])
def test_records_with_a_message_that_is_no_error_are_read_by_the_block(log: Path, text: str) -> None:
    row = {"level": "INFO", "message": text, "loss": 2.5}
    log.write_text("".join(json.dumps({"step": step, **row}) + "\n" for step in range(300)), encoding="utf-8")
    with patch.object(frames.FastRecords, "learn", autospec=True) as by_line:
        run = read(log, fast=True)
    assert not isinstance(run, str)
    assert run.records == 300
    assert not by_line.called


@pytest.mark.parametrize(
    "event", ['{"event": "resumed", "step": 500}', '{"status": "Restored from step 500", "step": 500}']
)
def test_an_event_of_a_resume_is_no_record_however_a_log_is_read(log: Path, event: str) -> None:
    lines = [f'{{"step": {step}, "loss": {1 / (1 + step):.6f}}}' for step in range(1000)]
    log.write_text("\n".join([*lines[:500], event, *lines[500:], ""]), encoding="utf-8")
    with patch.object(log_file, "FAST_BYTES", 1):
        by_block = read_run(log)
    by_line = read_run(log)
    assert by_block.records == by_line.records == 1000
    assert [one.first_step for one in by_block.segments] == [one.first_step for one in by_line.segments]
