"""What a record says beside its numbers is read: its phase, the metric of its one value, the unit behind a value."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from mldebug_mcp.logs import Run, read_run
from mldebug_mcp.logs.log_file import FAST_BYTES

TAKING_TURNS = [
    {"step": 1, "kind": "train_step", "loss": 2.5},
    {"step": 2, "kind": "train_step", "loss": 2.25},
    {"step": 2, "kind": "validation", "loss": 2.75},
    {"step": 3, "kind": "train_step", "loss": 2.0},
]


def _points(run: Run, metric: str) -> dict[float, float]:
    return dict(zip(run[metric].step.tolist(), run[metric].value.tolist(), strict=True))


def _jsonl(folder: Path, records: Sequence[Mapping[str, object]]) -> Path:
    path = folder / "log.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


@pytest.mark.parametrize("field", ["split", "phase", "mode", "type", "event", "log_type"])
def test_a_record_whose_field_says_evaluation_does_not_overwrite_training(field: str, tmp_path: Path) -> None:
    records = [{field: one["kind"], **{k: v for k, v in one.items() if k != "kind"}} for one in TAKING_TURNS]
    run = read_run(_jsonl(tmp_path, records))

    assert _points(run, "loss") == {1: 2.5, 2: 2.25, 3: 2.0}
    assert _points(run, "eval_loss") == {2: 2.75}


def test_a_field_that_names_a_place_or_both_phases_says_nothing_of_evaluation(tmp_path: Path) -> None:
    records = [{**one, "kind": "train_and_eval", "environment": "dev"} for one in TAKING_TURNS]

    assert "eval_loss" not in read_run(_jsonl(tmp_path, records))


def test_a_table_says_in_a_column_which_rows_are_of_evaluation(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("step,split,loss\n1,train,2.5\n2,train,2.25\n2,val,2.75\n3,train,2.0\n")
    run = read_run(path)

    assert _points(run, "loss") == {1: 2.5, 2: 2.25, 3: 2.0}
    assert _points(run, "eval_loss") == {2: 2.75}


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_a_large_log_is_parted_by_phase_as_a_small_one(suffix: str, tmp_path: Path) -> None:
    rows = [(step, "valid" if step % 5 == 0 else "train", 2 + step % 7 / 8, 0.125) for step in range(30_000)]
    lines = (
        [f'{{"step": {s}, "split": "{split}", "loss": {loss}, "lr": {lr}}}' for s, split, loss, lr in rows]
        if suffix == "jsonl"
        else ["step,split,loss,lr,padding", *(f"{s},{split},{loss},{lr},{'x' * 20}" for s, split, loss, lr in rows)]
    )
    path = tmp_path / f"log.{suffix}"
    path.write_text("\n".join(lines) + "\n")
    run = read_run(path)

    assert path.stat().st_size > FAST_BYTES
    assert _points(run, "eval_loss") == {s: loss for s, split, loss, _ in rows if split == "valid"}
    assert _points(run, "loss") == {s: loss for s, split, loss, _ in rows if split == "train"}
    assert len(run["learning_rate"]) == len(rows)


def test_what_an_event_wraps_is_read_by_its_own_names(tmp_path: Path) -> None:
    records = [{"event": "train_step", "level": "INFO", "data": {"step": s, "loss": 2.5 - s / 8}} for s in (1, 2)]

    assert _points(read_run(_jsonl(tmp_path, records)), "loss") == {1: 2.375, 2: 2.25}


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_a_metric_is_named_beside_its_value_in_a_long_table(suffix: str, tmp_path: Path) -> None:
    told = [(1, "train/loss", 2.5), (1, "train/lr", 0.125), (2, "train/loss", 2.25), (2, "val/loss", 2.75)]
    path = tmp_path / f"metrics.{suffix}"
    if suffix == "csv":
        path.write_text("step,metric,value\n" + "".join(f"{s},{name},{value}\n" for s, name, value in told))
    else:
        path.write_text("".join(f'{{"step": {s}, "name": "{n}", "value": {value}}}\n' for s, n, value in told))
    run = read_run(path)

    assert _points(run, "loss") == {1: 2.5, 2: 2.25}
    assert _points(run, "eval_loss") == {2: 2.75}
    assert run.records == 2


def test_a_run_with_a_name_and_the_value_of_a_critic_is_no_long_table(tmp_path: Path) -> None:
    run = read_run(_jsonl(tmp_path, [{"name": "ppo", "step": s, "value": 0.5, "loss": 2.5 / s} for s in (1, 2)]))

    assert _points(run, "loss") == {1: 2.5, 2: 1.25}


@pytest.mark.parametrize(("trained", "evaluated"), [("train_loss", "val_loss"), ("train_mse", "val_mse")])
def test_files_of_one_tag_each_are_one_run(tmp_path: Path, trained: str, evaluated: str) -> None:
    tags = {trained: (2.5, 2.25, 2.0), evaluated: (2.75, 2.5, 2.375), "train_lr": (0.1, 0.1, 0.1)}
    for tag, values in tags.items():
        rows = "".join(f"{1.7e9 + s},{s},{value}\n" for s, value in enumerate(values, 1))
        (tmp_path / f"run-version_7-tag-{tag}.csv").write_text(f"Wall time,Step,Value\n{rows}")
    run = read_run(tmp_path)

    assert _points(run, "loss") == {1: 2.5, 2: 2.25, 3: 2.0}
    assert _points(run, next(name for name in ("eval_loss", "eval_mse") if name in run)) == {1: 2.75, 2: 2.5, 3: 2.375}
    assert run["learning_rate"].value.tolist() == [0.1] * 3


def test_a_file_named_as_the_evaluation_of_another_holds_its_evaluation(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("step,loss\n1,2.5\n2,2.25\n3,2.0\n")
    (tmp_path / "log_val.csv").write_text("step,loss\n1,2.75\n2,2.5\n3,2.375\n")
    run = read_run(tmp_path)

    assert _points(run, "loss") == {1: 2.5, 2: 2.25, 3: 2.0}
    assert _points(run, "eval_loss") == {1: 2.75, 2: 2.5, 3: 2.375}


@pytest.mark.parametrize(
    ("written", "metric", "value"),
    [
        ("Acc: 87.5%", "accuracy", 0.875), ("gpu_mem: 9216MB", "memory", 9.0), ("rss: 2GiB", "host_memory", 2.0),
        ("step_time: 250ms", "step_time", 0.25), ("accuracy: 0.875", "accuracy", 0.875),
        ("loss_change: 50%", "loss_change", 50.0), ("gpu_mem_mb: 9216MB", "memory", 9.0),
    ],
)  # fmt: skip
def test_a_value_is_read_in_the_unit_behind_it(written: str, metric: str, value: float, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(f"step {s} | loss: 2.5 | {written}\n" for s in range(1, 30)))

    assert read_run(path)[metric].value.tolist() == [value] * 29


def test_a_rate_and_a_time_that_only_their_units_tell_are_read(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(f"step {s} | loss 2.5 | 250.0 ms | 800 tok/s\n" for s in range(1, 4)))
    run = read_run(path)

    assert run["step_time"].value.tolist() == [0.25] * 3
    assert run["tok/s"].value.tolist() == [800.0] * 3


def test_a_table_goes_on_below_a_line_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("step,lr,loss\n1,0.5,2.5\nSaving the model\n2,0.5,2.25\nstep,val_loss\n2,2.75\n")
    run = read_run(path)

    assert _points(run, "loss") == {1: 2.5, 2: 2.25}
    assert _points(run, "eval_loss") == {2: 2.75}


def test_tokens_seen_are_the_axis_of_printed_lines_that_count_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(
        "".join(f"tokensSeen: {s}00, loss: {2.5 - s / 8}\n" for s in (1, 2, 3)) + "tokensSeen: 300, val_loss: 2.75\n"
    )
    run = read_run(path)

    assert run.step_name == "token"
    assert _points(run, "loss") == {100: 2.375, 200: 2.25, 300: 2.125}
    assert _points(run, "eval_loss") == {300: 2.75}


def test_a_line_of_text_between_json_records_tells_of_a_resume(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    lines = [f'{{"step": {s}, "loss": {3 - s / 8}}}' for s in (1, 2, 3, 4, 5, 6)]
    path.write_text("\n".join([*lines[:4], "Resuming from checkpoint out/4 (step 4)", *lines[4:]]) + "\n")

    assert len(read_run(path).resumes) == 1


@pytest.mark.parametrize("said", ['"event": "resume"', '"type": "restart"', '"status": "resumed"'])
@pytest.mark.parametrize("count", [6, 3000])
def test_an_event_among_json_records_tells_of_a_resume(said: str, count: int, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    note = "x" * 300
    lines = [f'{{"step": {s}, "loss": {3 - s / 8}, "note": "{note}"}}' for s in range(1, count + 1)]
    half = count // 2
    path.write_text("\n".join([*lines[:half], f'{{{said}, "step": {half}}}', *lines[half:]]) + "\n")

    run = read_run(path)
    assert list(run.resumes) == [half + 1]
    assert len(run["loss"]) == count


def test_a_checkpoint_that_is_loaded_between_records_tells_of_a_resume(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    lines = [f"step {s} loss {3 - s / 8} lr 0.001" for s in range(1, 9)]
    path.write_text("\n".join([*lines[:4], "=> loaded checkpoint 'c_04.pth' (epoch 1, step 4)", *lines[4:]]) + "\n")

    assert list(read_run(path).resumes) == [5]


def test_an_evaluation_record_of_mmcv_keeps_what_it_says_of_training(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    train = [f'{{"mode": "train", "epoch": 1, "iter": {i}, "loss": {2 - i / 10}}}' for i in (1, 2, 3)]
    path.write_text("\n".join([*train, '{"mode": "val", "epoch": 1, "iter": 3, "train_loss": 1.5, "val_loss": 1.25}']))

    run = read_run(path)
    assert run["eval_loss"].value.tolist() == [1.25]
    assert run["train_loss"].value.tolist() == [1.5]


def test_a_loss_that_fails_keeps_its_name_beside_the_mean_of_its_epoch(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    epochs = [f"[{e}, 1] loss: {a}\n[{e}, 11] loss: nan\n==> epoch {e}: train loss nan, val loss nan\n"
              for e, a in ((1, "inf"), (2, "nan"), (3, "nan"))]  # fmt: skip
    path.write_text("".join(epochs))

    run = read_run(path)
    assert len(run["loss"]) == 6
    assert math.isinf(run["loss"].value[0])


def test_a_score_behind_an_evaluation_that_repeats_a_name_is_of_the_evaluation(tmp_path: Path) -> None:
    path = tmp_path / "epochs.log"
    line = "Epoch {} | train loss: 0.9, accuracy: 0.6 | valid loss: 0.2, accuracy: 0.97, f1_macro: 0.25\n"
    path.write_text("".join(line.format(epoch) for epoch in (1, 2, 3)))

    run = read_run(path)
    assert {"loss", "accuracy", "eval_loss", "eval_accuracy", "eval_f1_macro"} <= run.series.keys()
