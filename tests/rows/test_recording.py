"""A recording tells the rows of a step: of all micro-batches, all ranks, all parts, and of the last start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mldebug_mcp import rows_at
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.rows.plan import fed_before, read_recording, recordings_in

HEAD = {"recorder": 1, "rows_kind": "index", "data_length": 100}
START = {"recorder": 1, "time": 1.5}


def write(file: Path, *records: object) -> Path:
    file.write_text("".join(json.dumps(one) + "\n" for one in records))
    return file


def fed(path: Path, step: int) -> dict[int, list[int | str]]:
    return read_recording(recordings_in(path), range(step, step + 1)).fed.get(step, {})


def test_micro_batches_of_a_step_are_put_together(tmp_path: Path) -> None:
    file = write(
        tmp_path / "recorder.jsonl", HEAD, {"step": 1, "rows": [4, 9]}, {"step": 1, "rows": [7]},
        {"step": 2, "rows": [[1, 2], [3]]},
    )  # fmt: skip
    assert fed(file, 1) == {0: [4, 9, 7]}
    assert fed(file, 2) == {0: [1, 2, 3]}


def test_ranks_are_known_by_their_heads_or_by_the_names_of_their_files(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", HEAD | {"sampler": {"rank": 1}}, {"step": 1, "rows": [5]})
    write(tmp_path / "b.jsonl", HEAD | {"sampler": {"rank": 0}}, {"step": 1, "rows": [6]})
    assert fed(tmp_path, 1) == {1: [5], 0: [6]}
    named = tmp_path / "named"
    named.mkdir()
    write(named / "recorder.rank3.jsonl", HEAD, {"step": 1, "rows": [5]})
    assert fed(named, 1) == {3: [5]}


def test_parts_are_read_oldest_first_and_a_later_start_replaces_an_earlier_one(tmp_path: Path) -> None:
    write(tmp_path / "recorder.jsonl.2", START, HEAD, {"step": 1, "rows": [1]}, {"step": 2, "rows": [2]})
    write(tmp_path / "recorder.jsonl.1", START | HEAD | {"continued": True}, {"step": 2, "rows": [3]})
    write(
        tmp_path / "recorder.jsonl",
        START,
        {"step": 2, "rows": [4]},
        HEAD,
        {"step": 2, "rows": [6]},
        {"step": 3, "rows": [5]},
    )
    assert fed(tmp_path, 1) == {0: [1]}
    assert fed(tmp_path, 2) == {0: [4, 6]}
    found = read_recording(recordings_in(tmp_path), range(2, 3))
    assert (found.first, found.last) == (1, 3)


def test_earlier_steps_with_the_same_rows_are_found(tmp_path: Path) -> None:
    file = write(
        tmp_path / "recorder.jsonl", HEAD, {"step": 1, "rows": [4, 9]}, {"step": 5, "rows": [9]},
        {"step": 9, "rows": [9]},
    )  # fmt: skip
    assert fed_before(recordings_in(file), 9, [9, 77]) == {9: [1, 5]}


@pytest.mark.parametrize(
    "line",
    ['{"step": 1, "rows": [tru', '{"step": true, "rows": [1]}', '{"step": 1, "rows": ["\\u001b[31m", -1, 1.5, null]}',
     '[{"rows": 1}]', '{"step": 1e999, "rows": {"a": 1}}', '{"rows": ' + "[" * 5000 + "}"],
)  # fmt: skip
def test_broken_and_hostile_lines_give_no_rows(tmp_path: Path, line: str) -> None:
    file = tmp_path / "recorder.jsonl"
    file.write_text(json.dumps(HEAD) + "\n" + line + "\n" + '{"step": 2, "rows": [8]}\n')
    assert not fed(file, 1)
    assert fed(file, 2) == {0: [8]}


def test_other_logs_are_no_recording(tmp_path: Path) -> None:
    write(tmp_path / "log.jsonl", {"step": 1, "loss": 2.0, "rows": [1]})
    assert recordings_in(tmp_path) == []


def test_recordings_of_different_runs_are_not_taken_for_ranks_of_one(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "recorder.jsonl", HEAD, {"step": 1, "rows": [5]})
    with pytest.raises(InputError, match="several folders in it have recordings"):
        recordings_in(tmp_path)
    assert fed(tmp_path / "a", 1) == {0: [5]}
    for name in ("one", "two"):
        write(tmp_path / f"{name}.jsonl", HEAD | {"sampler": {"rank": 0}}, {"step": 1, "rows": [5]})
    with pytest.raises(InputError, match="another recording of rank 0"):
        fed(tmp_path, 1)
    assert fed(tmp_path / "two.jsonl", 1) == {0: [5]}


def test_a_step_beyond_the_run_and_a_pace_that_the_log_refutes_are_refused(tmp_path: Path) -> None:
    history = [{"step": step, "epoch": round(step / 38, 4), "loss": 2 - step / 100} for step in range(1, 71)]
    state = {"global_step": 70, "max_steps": 76, "log_history": history}
    (tmp_path / "trainer_state.json").write_text(json.dumps(state))

    assert rows_at(tmp_path, 5, sampler="sequential", batch_size=8, rows=304).batches[0].rows == list(range(32, 40))
    assert rows_at(tmp_path, 76, sampler="sequential", batch_size=8, rows=304).row_count == 8
    with pytest.raises(InputError, match="step 77 comes after the last one: the run has 76 steps"):
        rows_at(tmp_path, 77, sampler="sequential", batch_size=8, rows=304)
    with pytest.raises(InputError, match="the log does not agree: it has a pass every 38 steps"):
        rows_at(tmp_path, 5, sampler="sequential", batch_size=4, rows=304)
