"""Hostile, broken and odd input: a bounded answer or a clear error, never a traceback."""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs import LogTail, Run, read_run

SAMPLES = Path(__file__).parent / "samples"
TEXT = "".join(f"step {step}: loss {3 - step / 10:.4f}, lr 1e-4\n" for step in range(1, 11))
STATE = json.dumps({"log_history": [{"step": step, "loss": 1.5, "epoch": 0.5} for step in range(1, 6)]})


def _read_bytes(content: bytes, name: str) -> Run | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            return read_run(path)
        except InputError:
            return None


@settings(max_examples=150, deadline=None)
@given(
    content=st.binary(max_size=400), name=st.sampled_from(["a.log", "a.json", "a.jsonl", "a.csv", "trainer_state.json"])
)
def test_random_bytes_are_read_or_refused(content: bytes, name: str) -> None:
    run = _read_bytes(content, name)
    assert run is None or run.records <= len(content)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="step los:=0123456789.,|%/[]{}'\"<>it\r\n -e", max_size=300))
def test_random_text_that_looks_like_a_log_is_read_or_refused(text: str) -> None:
    run = _read_bytes(text.encode(), "a.log")
    assert run is None or run.records <= len(text)


@pytest.mark.parametrize("sample", ["trainer_stdout", "stable_baselines3", "composer", "yolo", "verl", "keras"])
def test_a_log_cut_at_any_byte_is_read_or_refused(sample: str) -> None:
    content = (SAMPLES / f"{sample}.log").read_bytes()
    whole = read_run(SAMPLES / f"{sample}.log")
    for end in range(0, len(content), 23):
        run = _read_bytes(content[:end], "train.log")
        assert run is None or run.records <= whole.records + 1


def test_a_state_cut_at_any_byte_keeps_its_whole_records() -> None:
    content = STATE.encode()
    for end in range(len(content)):
        run = _read_bytes(content[:end], "trainer_state.json")
        assert run is None or run.records <= 5
    assert (run := _read_bytes(content[:-3], "trainer_state.json")) is not None
    assert run.records == 4


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp866"])
def test_encodings_are_read_or_refused_by_name(encoding: str) -> None:
    marked = encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32")
    text = ("Modèle é\n" if encoding != "cp866" else "Модель\n") + TEXT
    run = _read_bytes(text.encode(encoding), "train.log")
    if marked or encoding in ("latin-1", "cp866"):
        assert run is not None
        assert run["loss"].value.tolist() == pytest.approx([3 - step / 10 for step in range(1, 11)])
    else:
        assert run is None


def test_one_line_of_ten_megabytes_is_skipped_and_told() -> None:
    run = _read_bytes(TEXT.encode() + b"x" * 10_000_000 + b"\n" + b"step 11: loss 1.5, lr 1e-4\n", "train.log")
    assert run is not None
    assert run.records == 11
    assert any("4 MiB" in note for note in run.notes)


def test_deep_json_is_refused() -> None:
    assert _read_bytes(b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "a.json") is None
    assert _read_bytes(b"[" * 100_000, "a.json") is None


def test_a_sparse_gigabyte_of_zeros_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(InputError, match="nearly all of them holes"):
        read_run(path)


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "train.log")
    with pytest.raises(InputError, match="not a regular file"):
        read_run(tmp_path / "train.log")


@pytest.mark.parametrize(
    ("unit", "times"),
    [("1%", 5000), ("loss ", 4000), ("1", 20_000), ("a=", 9000), ("{'a': ", 3000), ("| ", 9000), ("Epoch [", 2800),
     ("[rank", 4000), ("INFO - ", 2800), ("9" * 300 + "/", 2), ("\x1b[31m", 4000), ("Skipping step ", 70_000),
     ("overflow detected ", 50_000), ("Skipping step loss scale: 1 ", 30_000), ("iteration 1/ 2 | ", 60_000),
     ("step 1 loss 1.5 iteration 1/ 2 | ", 30_000), ("step 1 loss 1.5 Epoch 1: [v_num ", 600)],
)  # fmt: skip
def test_a_line_made_to_trap_a_pattern_is_passed_over(unit: str, times: int) -> None:
    run = _read_bytes((unit * times + "\n" + TEXT).encode(), "train.log")
    assert run is not None
    assert run.records >= 10


@pytest.mark.parametrize(
    ("record", "near"),
    [
        ("step {0}: loss 1.5 of [1,2,3,4,5,6,7,8,9,10]", f"step 9: loss 1.5 of [{'1,' * 80}1] again"),
        ("step {0}: loss 1.5 of 1 2 3 4 5 6 7 8 9 10", f"step 9: loss 1.5 of {'1' * 80} again"),
        ("step {0}: loss 1.5 of 1-2-3-4-5-6-7-8", f"step 9: loss 1.5 of {'-' * 400} again"),
        ("2024-01-01 10:00:0{0} step {0}: loss 1.5", "-" * 100_000),
        ("step {0}: loss 1.5 " + "-" * 100_000, "step 9: loss"),
    ],
    ids=["a longer list", "digits without blanks", "dashes", "a rule below times", "a rule behind a record"],
)
def test_a_line_that_nearly_has_a_known_shape_is_passed_by_at_once(record: str, near: str) -> None:
    text = "".join(f"{record.format(step)}\n" for step in range(1, 6)) + f"{near}\n" + record.format(8) + "\n"
    run = _read_bytes(text.encode(), "train.log")
    assert run is not None
    assert {1.0, 2.0, 3.0, 4.0, 5.0, 8.0} <= set(run["loss"].step.tolist())


def test_a_mark_in_place_of_a_number_is_no_nan() -> None:
    lines = [f"step {step}: loss {'-' if step == 5 else '1.5'}, lr 0.1\n" for step in range(1, 9)]
    run = _read_bytes("".join(lines).encode(), "train.log")
    assert run is not None
    assert run["loss"].value.tolist() == [1.5] * 7


def test_control_characters_do_not_reach_the_answer() -> None:
    run = _read_bytes(b"RuntimeError: \x1b]0;owned\x07\xe2\x80\xaeevil \x1b[2J\n" + TEXT.encode(), "train.log")
    assert run is not None
    assert run.messages
    assert all(character.isprintable() for message in run.messages for character in message.text)


def test_a_log_with_ten_thousand_metrics_is_bounded_and_told() -> None:
    lines = "".join(f"step {index}: loss_{index} 1.5\n" for index in range(10_000))
    run = _read_bytes(lines.encode(), "train.log")
    assert run is not None
    assert len(run.series) <= 2001
    assert any("left out" in note for note in run.notes)


def test_a_line_of_a_million_blanks_behind_a_counter_is_read_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("step 1: loss 2.5\nEpoch 1/2 " + " " * 1_000_000 + "x\nstep 2: loss 2.0\n")
    assert read_run(tmp_path / "a.log")["loss"].value.tolist() == [2.5, 2.0]


ROWS = "".join(json.dumps({"step": step, "loss": 3 - step / 100}) + "\n" for step in range(200))


@pytest.mark.parametrize(
    "content",
    [
        ROWS.encode() + b"\0" * 300_000,
        b"\0" * 300_000 + ROWS.encode(),
        ROWS[:3000].encode() + b"\0" * 5000 + ROWS[3000:].encode(),
        ROWS[:3000].encode() + ROWS[3000:].encode("utf-16-le"),
        ROWS.encode("utf-16-le"),
    ],
    ids=["crash", "emptied", "inside", "half_utf16", "utf16"],
)
def test_nul_bytes_in_a_text_are_left_out_with_a_note(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(content)
    run = read_run(path)
    assert len(run["loss"]) >= 199
    assert any("NUL bytes" in note for note in run.notes)
    assert LogTail(path).read().records == run.records


@pytest.mark.parametrize("content", [b"\0" * 5000, b"loss 1.0\n\x01\x02\0\0", b"\0\0 no line end"])
def test_other_bytes_with_nul_are_no_log(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(content)
    with pytest.raises(InputError, match="binary file"):
        read_run(path)


def test_a_table_whose_header_is_longer_than_the_first_bytes_is_read_and_keeps_its_late_loss(tmp_path: Path) -> None:
    names = [f"gradients/layer_{number}" for number in range(3000)]
    path = tmp_path / "wide.csv"
    rows = (",".join([str(step), *["0.5"] * 3000, f"{3 - step / 100}"]) for step in range(20))
    path.write_text("\n".join([",".join(["step", *names, "loss"]), *rows]) + "\n")
    run = read_run(path)
    assert run["loss"].value[-1] == pytest.approx(2.81)
    assert any("left out 1,00" in note and "of more than 2000 metrics" in note for note in run.notes)


def test_rows_with_keys_of_their_own_are_read_in_little_time(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps({"step": n, "loss": 1.0, f"key {n}": 1}) + "\n" for n in range(30_000)))
    began = time.process_time()
    assert len(read_run(path)["loss"]) == 30_000
    assert time.process_time() - began < 20


def test_steps_beyond_all_counting_are_no_steps(tmp_path: Path) -> None:
    steps = ["1e308", "-1e308", "NaN", "Infinity", "-5", "1e30"]
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(f'{{"step":{steps[n % 6]},"loss":{3 - n / 100}}}\n' for n in range(60)))
    run = read_run(path)
    assert run.step_name == "record"
    assert len(run["loss"]) == 60


def test_code_that_would_raise_is_not_what_was_raised(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(
        f'{TEXT}Traceback (most recent call last):\n  File "t.py", line 3, in step\n'
        '    if bad: raise RuntimeError("CUDA error: an illegal memory access")\n            ^^^^^\n'
        "ValueError: the batch is empty\n"
    )
    assert [message.text for message in read_run(path).messages][-1] == "ValueError: the batch is empty"
    assert not any("illegal" in message.text for message in read_run(path).messages)
