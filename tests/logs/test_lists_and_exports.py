"""What pages and scripts export: newest records first, bare lists of numbers, several runs side by side."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.logs.reading import points, read

from mldebug_mcp import InputError, diagnose_run, diagnose_runs
from mldebug_mcp.logs import read_run

LOSSES = [3.1, 2.75, 2.6, 2.25, 2.0]


@pytest.mark.parametrize("name", ["steps.csv", "steps.jsonl"])
def test_records_that_count_down_are_one_run_from_its_oldest_record(name: str, tmp_path: Path) -> None:
    rows = [(10 * number, loss) for number, loss in enumerate(LOSSES, 1)][::-1]
    if name.endswith("csv"):
        text = "iteration,train_loss\n" + "".join(f"{step},{loss}\n" for step, loss in rows)
    else:
        text = "".join(json.dumps({"iteration": step, "train_loss": loss}) + "\n" for step, loss in rows)
    run = read(tmp_path, text, name)
    assert points(run, "loss") == {10.0 * number: loss for number, loss in enumerate(LOSSES, 1)}
    assert (len(run.segments), len(run.attempts)) == (1, 1)
    assert any("newest first" in note for note in run.notes)


def test_rows_of_one_step_count_down_too(tmp_path: Path) -> None:
    text = "epoch,loss,val_loss\n3,1.5,\n3,,1.75\n2,2.0,\n2,,2.25\n1,3.0,\n1,,3.25\n"
    run = read(tmp_path, text, "history.csv")
    assert points(run, "loss") == {1: 3.0, 2: 2.0, 3: 1.5}
    assert points(run, "eval_loss") == {1: 3.25, 2: 2.25, 3: 1.75}


def test_steps_that_fall_while_the_clock_goes_on_are_restarts(tmp_path: Path) -> None:
    text = "step,elapsed,loss\n30,1,3.0\n20,2,2.5\n10,3,2.0\n"
    assert not any("newest first" in note for note in read(tmp_path, text, "log.csv").notes)


@pytest.mark.parametrize("order", [lambda step: step * 2654435761 % 2**32, str], ids=["in no order", "sorted as text"])
@pytest.mark.parametrize("name", ["steps.csv", "steps.jsonl"])
def test_records_in_no_order_are_one_run_in_the_order_of_its_steps(
    name: str, order: Callable[[int], int | str], tmp_path: Path
) -> None:
    rows = [(step, round(5 - step / 100, 2)) for step in sorted(range(1, 401), key=order)]
    if name.endswith("csv"):
        text = "step,loss\n" + "".join(f"{step},{loss}\n" for step, loss in rows)
    else:
        text = "".join(json.dumps({"step": step, "loss": loss}) + "\n" for step, loss in rows)
    run = read(tmp_path, text, name)
    assert run["loss"].step.tolist() == list(range(1, 401))
    assert points(run, "loss") == dict(rows)
    assert (len(run.segments), len(run.attempts)) == (1, 1)
    assert any("in no order" in note for note in run.notes)


def test_steps_in_no_order_while_the_clock_goes_on_were_written_so(tmp_path: Path) -> None:
    text = "step,elapsed,loss\n" + "".join(f"{at * 2654435761 % 2**32 % 1009},{at},2.5\n" for at in range(1, 401))
    assert not any("in no order" in note for note in read(tmp_path, text, "log.csv").notes)


@pytest.mark.parametrize(
    ("name", "metric"), [("train_loss.json", "loss"), ("lossen.txt", "loss"), ("run.json", "value")]
)
def test_a_json_list_of_numbers_is_read_as_a_column_of_them_is(name: str, metric: str, tmp_path: Path) -> None:
    run = read(tmp_path, json.dumps(LOSSES), name)
    assert run[metric].value.tolist() == LOSSES
    assert any("columns without names" in note for note in run.notes)


def test_a_json_list_of_rows_counts_its_steps_and_keeps_what_is_no_number(tmp_path: Path) -> None:
    text = "[[5, 2.5], [10, 2.25], [15, null], [20, NaN]]"
    values = points(read(tmp_path, text, "losses.json"), "loss")
    assert list(values) == [5, 10, 15, 20]
    assert (values[5], values[10]) == (2.5, 2.25)
    assert all(map(math.isnan, [values[15], values[20]]))


WIDE = (
    "Step,vit b16 - val/loss,rn-50 - val/loss,vit b16 - lr,rn-50 - lr\n"
    "100,2.5,2.75,1e-3,1e-4\n200,2.25,2.5,1e-3,1e-4\n300,2.0,,1e-3,\n"
)


@pytest.mark.parametrize("between", [" - ", " | ", ": "])
def test_runs_side_by_side_are_runs_of_the_file(between: str, tmp_path: Path) -> None:
    run = read(tmp_path, WIDE.replace(" - ", between), "chart.csv")
    assert run.runs_in_file == ("vit b16", "rn-50")
    assert points(run, "eval_loss") == {100: 2.5, 200: 2.25, 300: 2.0}
    other = read_run(tmp_path / "chart.csv", run="rn-50")
    assert points(other, "eval_loss") == {100: 2.75, 200: 2.5}
    assert other["learning_rate"].value.tolist() == [1e-4, 1e-4]


def test_the_table_of_runs_lists_each_run_of_a_file_by_a_name_that_reads_it(tmp_path: Path) -> None:
    (tmp_path / "chart.csv").write_text(WIDE)
    (tmp_path / "other.csv").write_text("step,loss\n" + "".join(f"{step},{3 - step / 9}\n" for step in range(9)))
    names = {row.name for row in diagnose_runs(tmp_path).rows}
    assert names == {"chart.csv/vit b16", "chart.csv/rn-50", "other.csv"}
    assert read_run(tmp_path, run="chart.csv/rn-50")["eval_loss"].value.tolist() == [2.75, 2.5]
    assert {row.name for row in diagnose_runs(tmp_path / "chart.csv").rows} == names - {"other.csv"}
    answer = diagnose_run(tmp_path / "chart.csv")
    assert answer.verdict.headline.startswith("1 of 2 runs in this file; none is longer. ")
    with pytest.raises(InputError, match="a file of one run"):
        diagnose_runs(tmp_path / "other.csv")


@pytest.mark.parametrize(
    ("first", "second"), [("train", "val"), ("generator", "discriminator"), ("Encoder", "Decoder"), ("actor", "critic")]
)
def test_phases_and_parts_of_a_model_side_by_side_are_one_run(first: str, second: str, tmp_path: Path) -> None:
    text = f"step,{first} - loss,{second} - loss\n" + "".join(f"{step},{3 - step / 9},2.5\n" for step in range(9))
    run = read(tmp_path, text, "log.csv")
    assert run.runs_in_file == ()
    assert len(run.series) == 2


def test_cells_without_a_number_and_columns_of_one_name_are_noted(tmp_path: Path) -> None:
    rows = "".join(f"{step},{'N/A' if step % 3 == 0 else 2.5},{step}.5,\n" for step in range(1, 31))
    run = read(tmp_path, "step,loss,loss,eval_loss\n" + rows, "log.csv")
    assert run["loss"].value.tolist() == [step + 0.5 for step in range(1, 31)]
    assert "2 columns are named loss: the last of them is read" in run.notes
    run = read(tmp_path, "step,loss,acc,eval_loss\n" + rows, "log.csv")
    assert len(run["loss"]) == 20
    assert "10 cells of loss hold no number, such as 'N/A': left out" in run.notes
    assert not any("eval_loss" in note for note in run.notes)


RUNS = {"3e5": 4.0, "ab12": 6.0}


def of_runs(form: str, *, interleaved: bool) -> str:
    """Return the records of two runs in one log, each with the id of its run."""
    rows = [(run, step, first - step / 100) for run, first in RUNS.items() for step in range(1, 101)]
    rows = sorted(rows, key=lambda row: row[1]) if interleaved else rows
    if form == "csv":
        return "run_id,step,loss\n" + "".join(f"{run},{step},{loss}\n" for run, step, loss in rows)
    return "".join(json.dumps({"run_id": run, "step": step, "loss": loss}) + "\n" for run, step, loss in rows)


@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_column_that_names_the_run_tells_runs_apart(form: str, *, interleaved: bool, tmp_path: Path) -> None:
    (tmp_path / f"log.{form}").write_text(of_runs(form, interleaved=interleaved))
    answer = diagnose_run(tmp_path / f"log.{form}")
    assert answer.run.records == 100
    assert answer.run.runs_in_folder == 2
    assert any("3e5 (100), ab12 (100)" in note for note in answer.notes)
    for run, first in RUNS.items():
        assert points(read_run(tmp_path / f"log.{form}", run=run), "loss") == {
            float(step): first - step / 100 for step in range(1, 101)
        }
    assert {row.name for row in diagnose_runs(tmp_path / f"log.{form}").rows} == {
        f"log.{form}/3e5", f"log.{form}/ab12"
    }  # fmt: skip


def test_a_run_that_was_resumed_under_another_id_stays_one_run(tmp_path: Path) -> None:
    rows = [("a", step) for step in range(1, 61)] + [("b", step) for step in range(50, 101)]
    text = "run_id,step,loss\n" + "".join(f"{run},{step},{4 - step / 100}\n" for run, step in rows)
    run = read(tmp_path, text, "log.csv")
    assert (run.first_step, run.last_step) == (1, 100)
    assert not run.runs_in_file


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_column_that_tells_the_rank_keeps_the_lowest_and_compares_the_others(form: str, tmp_path: Path) -> None:
    rows = [
        {"rank": rank, "step": step, "loss": 4 - step / 100 + 5 * rank} for step in range(1, 101) for rank in (1, 0)
    ]
    lines = (
        [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        if form == "csv"
        else map(json.dumps, rows)
    )
    run = read(tmp_path, "\n".join(lines) + "\n", f"log.{form}")
    assert run.records == 100
    assert run["loss"].value[-1] == 3
    assert run["loss/rank_1"].value[-1] == 8
    assert any("the records of rank 0 are read; 100 of other ranks" in note for note in run.notes)


@pytest.mark.parametrize("number", ["{}", "np.float32({})", "numpy.float64({})"])
def test_scores_in_a_list_are_those_of_classes_and_their_mean(number: str, tmp_path: Path) -> None:
    absent = "nan" if number == "{}" else number.format("nan")
    text = "".join(
        f"2026-01-10 10:0{epoch}:03.11:  \n2026-01-10 10:0{epoch}:03.11: Epoch {epoch} \n"
        f"2026-01-10 10:0{epoch}:03.11: train_loss -0.{epoch}5 \n"
        f"2026-01-10 10:0{epoch}:03.11: Pseudo dice "
        f"[{number.format(0.5 + epoch / 10)}, {number.format(0.0)}, {absent}] \n"
        for epoch in range(4)
    )
    run = read(tmp_path, text)
    assert run["Pseudo dice/0"].value.tolist() == pytest.approx([0.5, 0.6, 0.7, 0.8])
    assert run["Pseudo dice/1"].value.tolist() == [0, 0, 0, 0]
    assert run["mean Pseudo dice"].value.tolist() == pytest.approx([0.25, 0.3, 0.35, 0.4])
    assert "Pseudo dice/2" not in run


def test_the_list_of_scores_of_coco_is_read_by_their_names(tmp_path: Path) -> None:
    scores = [0.5, 0.75, 0.25, 0.1, 0.2, -1, 0.3, 0.5, 0.55, 0.3, 0.6, -1]
    records = ({"epoch": epoch, "train_loss": 3.0 - epoch, "test_coco_eval_bbox": scores} for epoch in range(3))
    run = read(tmp_path, "".join(map("{}\n".format, map(json.dumps, records))), "log.txt")
    logged = {series.logged_as: series.value[0] for series in run.series.values() if "coco" in series.logged_as}
    assert logged["test_coco_eval_bbox/AP50"] == 0.75
    assert not any(name.endswith("large") for name in (*logged, *run.series))


def test_the_words_below_the_records_of_another_run_are_not_of_the_one_that_is_read(tmp_path: Path) -> None:
    lines = []
    for run in (1, 2, 3):
        lines += [f"Run: 0{run}, Epoch: {epoch:02}, Loss: {4 - epoch / 9:.4f}\n" for epoch in range(1, 21)]
        lines += [f"Run 0{run}:\n", "Highest Train: 99.30\n"]
    (tmp_path / "gnn.log").write_text("".join(lines))
    first = read_run(tmp_path / "gnn.log", run="1")
    assert ("Highest Train: 99.30", 20) in [(line.text, line.step) for line in first.text_lines]
    third = read_run(tmp_path / "gnn.log")
    assert not third.text_lines
    assert any("the last of the longest of 3 runs" in note for note in third.notes)


def test_values_that_are_counted_by_a_number_and_a_colon_are_no_header_and_rows(tmp_path: Path) -> None:
    run = read(tmp_path, "1:\t30.5\n2:\t20.25\n3:\tnan\n4:\tnan\n")
    assert points(run, "value") == pytest.approx({1: 30.5, 2: 20.25, 3: math.nan, 4: math.nan}, nan_ok=True)


def test_the_command_that_showed_columns_hides_none_of_them(tmp_path: Path) -> None:
    run = read(tmp_path, "tail curve.out\n 100  2.5  0.5\n 200  1.5  0.25\n 300  1.25  0.125\n")
    assert run["value"].value.tolist() == [2.5, 1.5, 1.25]
