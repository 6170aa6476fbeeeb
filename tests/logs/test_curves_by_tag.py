"""Folders of tables of one metric each, which their files name, as TensorBoard exports the tags of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.logs.reading import Points, points

from mldebug_mcp.logs import read_run

LOSS = {float(step): round(3 - step / 40, 3) for step in range(4, 64, 4)}
EVALUATED = {float(step): round(3.1 - step / 50, 3) for step in range(20, 80, 20)}
RATE = dict.fromkeys(LOSS, 0.01)
NORM = {step: 2 + step % 3 for step in LOSS}
Q_VALUES = {step: step / 9 for step in LOSS}
HEADS = [
    "Wall time,Step,Value",
    "step,value",
    "Step,Value",
    "wall_time,global_step,value",
    '"Step","Value"',
    "iteration;value",
]
FOLDERS = {
    "names": ["train_loss", "eval_loss", "optim_lr", "optim_grad_norm", "train_q_max"],
    "a run in front": ["kws_a1_train_loss", "kws_a1_eval_loss", "kws_a1_lr", "kws_a1_grad_norm", "kws_a1_train_q_max"],
    "folders": ["train/loss", "eval/loss", "optim/lr", "optim/grad_norm", "train/q_max"],
    "phases below metrics": ["loss/train", "loss/val", "lr/train", "grad_norm/train", "reward/train"],
    "folders of a kind": ["train/loss", "val/loss", "train/lr", "train/grad_norm", "train/q_max"],
}


def _write(place: Path, head: str, curves: Mapping[str, Points]) -> None:
    for name, values in curves.items():
        clock = ["1741944000.5"] * (head.count(",") - 1)
        between = ";" if ";" in head else ","
        rows = [between.join([*clock, f"{step:.0f}", str(value)]) for step, value in values.items()]
        (place / f"{name}.csv").parent.mkdir(parents=True, exist_ok=True)
        (place / f"{name}.csv").write_text("\n".join([head, *rows, ""]))


@pytest.mark.parametrize("below", ["", "scalars"])
@pytest.mark.parametrize("names", FOLDERS)
@pytest.mark.parametrize("head", HEADS)
def test_tables_of_one_metric_each_are_one_run_named_by_its_files(
    head: str, names: str, below: str, tmp_path: Path
) -> None:
    curves = dict(zip(FOLDERS[names], (LOSS, EVALUATED, RATE, NORM, Q_VALUES), strict=True))
    _write(tmp_path / below, head, curves)
    (tmp_path / "config.yaml").write_text("batch_size: 16\noptimizer: adam\ngamma: 0.9\n")
    run = read_run(tmp_path)
    assert (run.runs_in_folder, run.step_name) == (1, "step")
    read = {name: points(run, name) for name in ("loss", "eval_loss", "learning_rate", "grad_norm")}
    assert read == {"loss": LOSS, "eval_loss": EVALUATED, "learning_rate": RATE, "grad_norm": NORM}
    assert any(name.endswith("q_max") or name == "reward" for name in run.series)
    assert run.settings["per_device_train_batch_size"].value == 16


def test_tables_that_are_named_after_runs_stay_runs(tmp_path: Path) -> None:
    _write(tmp_path, "step,value", {"small": LOSS, "large": RATE})
    assert read_run(tmp_path).runs_in_folder == 2


def test_each_folder_with_the_same_tables_is_a_run(tmp_path: Path) -> None:
    for name in ("small", "large"):
        _write(tmp_path / name, "Step,Value", {"train_loss": LOSS, "eval_loss": EVALUATED, "q_max": Q_VALUES})
    run = read_run(tmp_path)
    assert run.runs_in_folder == 2
    assert (points(run, "loss"), points(run, "eval_loss")) == (LOSS, EVALUATED)


def test_charts_that_wandb_exports_one_a_file_are_one_run(tmp_path: Path) -> None:
    for file, metric, values in (("loss", "loss", LOSS), ("val_loss", "val/loss", EVALUATED)):
        name = f"swift-sky-2 - {metric}"
        rows = "".join(f"{step:.0f},{value},{value},{value}\n" for step, value in values.items())
        (tmp_path / f"{file}.csv").write_text(f"Step,{name},{name}__MIN,{name}__MAX\n{rows}")
    run = read_run(tmp_path)
    assert (points(run, "loss"), points(run, "eval_loss")) == (LOSS, EVALUATED)


def test_lists_of_json_that_tensorboard_gives_of_each_tag_are_one_run(tmp_path: Path) -> None:
    for tag, every in (("train_loss", 10), ("train_lr", 10), ("eval_recall@10", 50)):
        rows = [[1796008106.61 + at, at, 1 / at] for at in range(every, 501, every)]
        (tmp_path / f"{tag}.json").write_text(json.dumps(rows))
    (tmp_path / "train_lr.json").write_text((tmp_path / "train_lr.json").read_text()[:-9])
    run = read_run(tmp_path)
    assert run["loss"].step.tolist() == list(range(10, 501, 10))
    assert len(run["learning_rate"]) == 49
    assert run["eval_recall@10"].value[0] == 1 / 50
    assert not run.siblings


@pytest.mark.parametrize("name", ["train_loss.json", "run-.-tag-train_loss.json"])
def test_a_list_of_json_that_tensorboard_gives_is_the_metric_of_its_file_also_where_it_is_cut_off(
    tmp_path: Path, name: str
) -> None:
    rows = [[1741944000.5 + step, int(step), value] for step, value in LOSS.items()]
    log = tmp_path / name
    log.write_text(json.dumps(rows))
    assert points(read_run(log), "loss") == LOSS
    log.write_text(json.dumps(rows)[:-9])
    run = read_run(log)
    assert points(run, "loss") == dict(list(LOSS.items())[:-1])
    assert any("cut off" in note for note in run.notes)
