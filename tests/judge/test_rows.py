"""The rows of a step: recorded or drawn again, shown, and compared with those of the steps around."""

from __future__ import annotations

import hashlib
import json
import random
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mldebug_mcp import InputError, diagnose_run, rows_at
from mldebug_mcp.cli import main
from mldebug_mcp.core.access import Access, OutsideError, confined
from mldebug_mcp.report.concise import concise_rows
from mldebug_mcp.rows.plan import Generator, Plan

ROWS, BATCH, PLANTED = 10_000, 16, 4321


def lines(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


@pytest.fixture(scope="module")
def spiked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, int]:
    """A linear model trained on 10,000 rows, one of them on another scale: its folder, its data, the bad step."""
    folder = tmp_path_factory.mktemp("spiked")
    chance = np.random.default_rng(0)
    x = chance.normal(size=(ROWS, 8))
    y = x @ chance.normal(size=8) + chance.normal(0, 0.3, ROWS)
    x[PLANTED] *= 400.0
    weights, log, recorded = np.zeros(8), [], [{"recorder": 1, "rows_kind": "index", "data_length": ROWS}]
    order = Generator(3).shuffled(ROWS)
    for step in range(1, ROWS // BATCH + 1):
        rows = order[(step - 1) * BATCH : step * BATCH]
        error = x[rows] @ weights - y[rows]
        gradient = 2 * x[rows].T @ error / BATCH
        norm = float(np.linalg.norm(gradient))
        weights -= 0.02 * gradient * min(1.0, 5.0 / norm)
        log.append({"step": step, "loss": float((error**2).mean()), "grad_norm": norm, "lr": 0.02})
        recorded.append({"step": step, "rows": rows.tolist()})
    lines(folder / "train_log.jsonl", log)
    lines(folder / "recorder.jsonl", recorded)
    data = lines(folder / "data.csv.jsonl", [{"features": row.tolist(), "label": 0} for row in np.round(x, 4)])
    return folder, data, int(np.flatnonzero(order == PLANTED)[0]) // BATCH + 1


def test_a_sequential_pass_of_two_billion_rows_takes_no_memory(tmp_path: Path) -> None:
    tracemalloc.start()
    answer = rows_at(
        tmp_path, 400_000_000, sampler="sequential", batch_size=4, rows=2_000_000_000, accumulation=1, first_step=1
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * 1024**2
    assert [one.row for one in answer.rows] == list(range(1_599_999_996, 1_600_000_000))


def test_a_sequential_pass_feeds_the_rows_of_the_pass_before_again(tmp_path: Path) -> None:
    answer = rows_at(tmp_path, 4, sampler="sequential", batch_size=4, rows=8, first_step=1)
    assert [(one.row, one.before) for one in answer.rows] == [(4, [2]), (5, [2]), (6, [2]), (7, [2])]


def test_a_planted_row_of_ten_thousand_is_named_by_one_call_after_the_spike(spiked: tuple[Path, Path, int]) -> None:
    folder, data, bad = spiked
    diagnosis = diagnose_run(folder / "train_log.jsonl")
    spike = next(one for one in diagnosis.present if one.symptom == "loss_spike")
    assert spike.steps[0] == bad
    answer = rows_at(folder, bad, data)
    assert answer.rows[0].row == PLANTED
    assert "features" in answer.rows[0].odd[0]
    assert not any(one.odd for one in answer.rows[1:])


def test_the_diagnosis_of_a_spike_names_the_call_where_the_rows_can_be_told(spiked: tuple[Path, Path, int]) -> None:
    folder, _, bad = spiked
    told = diagnose_run(folder / "train_log.jsonl")
    steps = [step for cause in told.hypotheses if cause.cause == "bad_batch" for step in cause.next_steps]
    beside = str(folder / "train_log.jsonl")
    assert f'rows_at(path="{beside}", step={bad})' not in [step.call for step in steps]  # the log alone has no rows
    (folder / "only").mkdir()
    for name in ("train_log.jsonl", "recorder.jsonl"):
        (folder / "only" / name).write_bytes((folder / name).read_bytes())
    told = diagnose_run(folder / "only")
    steps = [step for cause in told.hypotheses if cause.cause == "bad_batch" for step in cause.next_steps]
    assert f'rows_at(path="{folder / "only"}", step={bad})' in [step.call for step in steps]


def test_an_odd_text_is_told_in_words(tmp_path: Path) -> None:
    texts = [f"the {row}th cat sat on the mat and looked at the moon for a while" for row in range(400)]
    texts[77] = "zq " * 60
    data = lines(tmp_path / "data.jsonl", [{"text": one} for one in texts])
    recorded = [{"recorder": 1, "rows_kind": "index"}]
    recorded += [{"step": step, "rows": list(range(step * 8 - 8, step * 8))} for step in range(1, 51)]
    answer = rows_at(lines(tmp_path / "recorder.jsonl", recorded), 10, data)
    assert answer.rows[0].row == 77
    assert any("are the same one" in one for one in answer.rows[0].odd)
    assert "zq" in answer.rows[0].text
    assert answer.here is not None
    assert answer.around is not None
    assert (answer.here.rows, answer.around.rows) == (8, 48)


def test_rows_of_all_ranks_and_micro_batches_are_told_with_where_they_came_before(tmp_path: Path) -> None:
    for rank in (0, 1):
        head = {"recorder": 1, "rows_kind": "index", "sampler": {"rank": rank, "world": 2}}
        fed = [{"step": step, "rows": [10 * step + rank, rank]} for step in (1, 2, 3)]
        lines(tmp_path / f"recorder.rank{rank}.jsonl", [head, *fed, {"step": 3, "rows": [99]}])
    answer = rows_at(tmp_path, 3)
    assert [(one.rank, one.rows) for one in answer.batches] == [(0, [30, 0, 99]), (1, [31, 1, 99])]
    assert {one.row: one.before for one in answer.rows} == {30: [], 0: [1, 2], 99: [], 31: [], 1: [1, 2]}
    assert answer.source == "recorded"


def test_ranks_without_a_recording_are_told(tmp_path: Path) -> None:
    head = {"recorder": 1, "sampler": {"rank": 0, "world": 4}}
    answer = rows_at(lines(tmp_path / "recorder.jsonl", [head, {"step": 1, "rows": [5]}]), 1)
    assert any("1 of 4 ranks" in note for note in answer.notes)


def test_keys_of_tokens_are_found_in_the_data(tmp_path: Path) -> None:
    def key(ids: list[int]) -> str:
        return hashlib.blake2b(b"".join(i.to_bytes(8, "little") for i in ids), digest_size=8).hexdigest()

    rows = [[row + 5, row + 6, 7] for row in range(40)]
    data = lines(tmp_path / "data.jsonl", [{"input_ids": one} for one in rows])
    fed = [{"step": step, "rows": [key(rows[step]), key(rows[step + 20])]} for step in range(1, 6)]
    path = lines(tmp_path / "recorder.jsonl", [{"recorder": 1, "rows_kind": "hash"}, *fed])
    assert rows_at(path, 3).batches[0].rows == [key(rows[3]), key(rows[23])]
    assert rows_at(path, 3, data).batches[0].rows == [3, 23]


def test_a_step_that_was_not_recorded_is_drawn_again_if_the_head_tells_enough(tmp_path: Path) -> None:
    sampler = {"kind": "torch.DistributedSampler", "seed": 4, "batch_size": 3, "world": 2, "rank": 0}
    head = {"recorder": 1, "rows_kind": "index", "data_length": 30, "sampler": sampler}
    path = lines(tmp_path / "recorder.jsonl", [head, {"step": 9, "rows": [1]}])
    answer = rows_at(path, 2, first_step=1)
    assert answer.source == "reconstructed"
    order = Generator(4).shuffled(30)
    assert [one.rows for one in answer.batches] == [order[6:12:2].tolist(), order[7:12:2].tolist()]
    with pytest.raises(InputError, match="none of step 2; nor can they be drawn again"):
        rows_at(lines(tmp_path / "recorder.jsonl", [{"recorder": 1}, {"step": 9, "rows": [1]}]), 2)


PLAIN: dict[str, Any] = {"sampler": "random", "seed": 1, "batch_size": 4, "rows": 40}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return lines(tmp_path / "log.jsonl", [{"step": step, "loss": 1.0} for step in range(1, 31)])


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({}, "nothing there tells how rows were sampled"),
        ({**PLAIN, "rows": None}, "rows=N is needed"),
        ({**PLAIN, "seed": None}, "seed=N is needed"),
        ({**PLAIN, "accumulation": 3}, "past_end"),
        ({**PLAIN, "world": 2}, "which library divides the rows"),
        ({**PLAIN, "resumed_at": [5]}, "what its generator gave afterwards depends on the script"),
        ({**PLAIN, "sampler": "lightning"}, "on one device Lightning"),
        ({**PLAIN, "sampler": "oracle"}, "use one of"),
        ({**PLAIN, "batch_size": 0}, "a whole number from 1 to 2147483647"),
        ({**PLAIN, "rows": 2**31}, "a whole number from 1 to 2147483647"),
        ({**PLAIN, "batch_size": 50, "drop_last": True}, "holds no batch"),
        ({**PLAIN, "rows": 2**30}, "more than are shuffled again"),
        ({**PLAIN, "accumulation": 2**30}, "a step of more than"),
        ({**PLAIN, "sampler": "accelerate", "world": 3, "split_batches": True}, "does not come out"),
    ],
)
def test_what_cannot_be_told_exactly_is_refused_with_the_reason(log: Path, said: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        rows_at(log, 3, **said)


def test_a_step_before_the_first_a_far_one_and_a_path_that_is_not_there_are_refused(log: Path) -> None:
    with pytest.raises(InputError, match="before the first one"):
        rows_at(log, 0, **PLAIN)
    with pytest.raises(InputError, match="too far on"):
        rows_at(log, 2**52, **PLAIN)
    with pytest.raises(InputError, match="no such file or folder"):
        rows_at(log.parent / "nothing", 1)
    with pytest.raises(InputError, match="a whole number"):
        rows_at(log, -1)


def test_the_first_step_of_a_log_decides_which_batch_it_is(tmp_path: Path, log: Path) -> None:
    from_zero = lines(tmp_path / "zero.jsonl", [{"step": step, "loss": 1.0} for step in range(30)])
    sparse = lines(tmp_path / "sparse.jsonl", [{"step": step, "loss": 1.0} for step in range(10, 31, 10)])
    first = rows_at(log, 1, **PLAIN).batches[0].rows
    assert rows_at(from_zero, 0, **PLAIN).batches[0].rows == first
    with pytest.raises(InputError, match="first_step=0 or first_step=1"):
        rows_at(sparse, 10, **PLAIN)
    answer = rows_at(sparse, 10, first_step=1, **PLAIN)
    assert any("was fed from step 1 on" in note for note in answer.notes)


@pytest.mark.parametrize("past_end", ["step", "carry"])
def test_accumulation_over_the_end_of_a_pass_is_as_was_said(log: Path, past_end: Any) -> None:
    answer = rows_at(log, 4, accumulation=3, past_end=past_end, **PLAIN)
    assert [one.epoch for one in answer.batches] == ([0] if past_end == "step" else [0, 1, 1])


def test_many_rows_are_bounded_in_the_short_form(log: Path) -> None:
    answer = rows_at(log, 1, sampler="sequential", batch_size=5000, rows=20_000)
    short = concise_rows(answer)
    assert len(short.batches[0].rows) == 64
    assert "64 of 5,000 rows fed are listed here" in short.notes


def test_nothing_outside_the_roots_is_read(tmp_path: Path, log: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    data = lines(tmp_path / "data.jsonl", [{"input_ids": [1, 2]}] * 9)
    outside = lines(tmp_path / "recorder.jsonl", [{"recorder": 1}, {"step": 1, "rows": [1]}])
    (inside / "recorder.jsonl").symlink_to(outside)
    lines(inside / "own.jsonl", [{"recorder": 1}, {"step": 2, "rows": [1]}])
    with confined(Access((str(inside),))):
        with pytest.raises(OutsideError):
            rows_at(log, 1)
        with pytest.raises(OutsideError):
            rows_at(inside / "own.jsonl", 2, data)
        with pytest.raises(InputError):
            rows_at(inside, 1)
        assert rows_at(inside, 2).batches[0].rows == [1]


def test_the_command_prints_the_rows_and_refuses_in_a_line(
    tmp_path: Path, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = lines(tmp_path / "recorder.jsonl", [{"recorder": 1}, {"step": 1, "rows": [7]}, {"step": 2, "rows": [7, 8]}])
    assert main(["rows", str(path), "--step", "2"]) == 0
    told = capsys.readouterr().out
    assert "step 2: 2 rows, as they were recorded" in told
    assert "7 (step 1)" in told
    assert main(["rows", str(path), "--step", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["batches"][0]["rows"] == [7, 8]
    options = ["--sampler", "random", "--seed", "1", "--batch-size", "4", "--rows", "40"]
    assert main(["rows", str(log), "--step", "2", *options]) == 0
    assert "drawn again" in capsys.readouterr().out
    assert main(["rows", str(log), "--step", "2"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_plan_of_one_row_is_dealt(log: Path) -> None:
    assert Plan(1, 1).steps == 1
    assert rows_at(log, 30, **{**PLAIN, "rows": 1}).batches[0].rows == [0]


def test_rows_that_fill_the_last_batch_of_a_pass_came_before_in_it(log: Path) -> None:
    said: dict[str, Any] = {"sampler": "accelerate", "seed": 1, "batch_size": 4, "world": 2, "rows": 21}
    first, last = rows_at(log, 1, **said), rows_at(log, 3, **said)
    order = Generator(1).shuffled(21).tolist()
    again = {one.row: one.before for one in last.rows if one.before}
    assert again == {row: [1] for row in order[:3]}
    assert {one.row for one in first.rows} == set(order[:8])
    assert not any(one.before for one in first.rows)


def test_rows_are_told_where_the_data_cannot_show_them(tmp_path: Path) -> None:
    path = lines(tmp_path / "recorder.jsonl", [{"recorder": 1}, {"step": 1, "rows": [7, 70]}])
    short = lines(tmp_path / "short.jsonl", [{"input_ids": [row, 2]} for row in range(30)])
    other = lines(tmp_path / "other.jsonl", [{"picture": None}] * 99)
    for data, why in ((short, "row 70 of the step is not in it"), (other, "none of its columns")):
        answer = rows_at(path, 1, data)
        assert answer.batches[0].rows == [7, 70]
        assert any(why in note for note in answer.notes)


ODD: list[Any] = [
    None, True, -1, 0, 3, 1e308, float("nan"), "x" * 5000, "\x1b[31m", [], [1], {}, {"a": 1}, 2**70,
    "abcdef0123456789", [[1, [2]]], 3.5, 2, 4, "torch.DistributedSampler",
]  # fmt: skip
"""What a head or a record may hold that a stranger wrote."""


def test_no_recording_of_a_stranger_ends_in_anything_but_rows_or_a_refusal(tmp_path: Path) -> None:
    chance = random.Random(1)
    names = ("kind", "seed", "batch_size", "world", "rank", "accumulation", "drop_last", "resumed_at", "sampler")
    answered = refused = 0
    for _ in range(250):
        sampler = chance.choice([*ODD, *({name: chance.choice(ODD) for name in names} for _ in range(20))])
        head = {name: chance.choice(ODD) for name in ("rows_kind", "data_length", "time", "rank")}
        records = [
            {"step": chance.choice([1, 2, chance.choice(ODD)]), "rows": chance.choice([*ODD, [1, 2]])} for _ in range(5)
        ]
        path = lines(tmp_path / "recorder.jsonl", [{"recorder": 1, **head, "sampler": sampler}, *records])
        said: dict[str, Any] = chance.choice([{}, {"first_step": 1}, {"sampler": "distributed", "first_step": 1}])
        try:
            rows_at(path, chance.choice([1, 2, 5]), **said)
            answered += 1
        except InputError:
            refused += 1
    assert answered > 10
    assert refused > 10
