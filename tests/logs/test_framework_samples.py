"""Logs that the frameworks themselves wrote (see samples/make): exact values, held to another way of reading them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mldebug_mcp.logs import Run, read_run

SAMPLES = Path(__file__).parent / "samples"
Rows = list[dict[str, Any]]
Points = dict[str, dict[float, float]]

TRAINER = ("plain", "evaluated", "accumulated", "summed", "resumed")
TRL = ("sft", "dpo", "kto", "reward", "grpo", "rloo")
HISTORIES = [f"trainer/{name}" for name in TRAINER] + [f"trl/{name}" for name in TRL]

NAMES = {
    "clip_ratio/region_mean": "clip_ratio",
    "completions/mean_length": "completion_length",
    "mean_reward": "reward",
    "eval_mean_reward": "eval_reward",
}
"""The Trainer's and TRL's names that are read as others; the rest are kept."""


def history_of(folder: str) -> Rows:
    rows: Rows = json.loads((SAMPLES / folder / "trainer_state.json").read_text())["log_history"]
    return rows


def points_of(rows: Iterable[Mapping[Any, Any]], step: str = "step", names: Mapping[str, str] | None = None) -> Points:
    """Return metrics as {step: value}, read without the package; the last value of a step stands."""
    points: Points = {}
    for row in rows:
        for name, value in row.items():
            if name != step and isinstance(value, (int, float)) and not math.isnan(value):
                points.setdefault((names or {}).get(name, name), {})[float(row[step])] = float(value)
    return points


def assert_reads(run: Run, points: Points) -> None:
    read = {name: dict(zip(one.step.tolist(), one.value.tolist(), strict=True)) for name, one in run.series.items()}
    assert read == points


def of_history(rows: Rows) -> Points:
    """Return the points of a Trainer's history; its closing record holds averages, which are a summary."""
    training = [row for row in rows if "train_runtime" not in row]
    points = points_of(training, names=NAMES)
    for row in rows:
        if "train_runtime" in row:
            for name in row.keys() - {"step", "epoch"}:
                points[f"summary/{name}"] = {float(row["step"]): float(row[name])}
    return points


@pytest.mark.parametrize("folder", HISTORIES)
def test_a_trainers_state_is_read_whole(folder: str) -> None:
    run = read_run(SAMPLES / folder / "trainer_state.json")
    assert run.formats == ("hf_trainer_state",)
    assert run.records == len(history_of(folder))
    assert run.setting("max_steps") == history_of(folder)[-1]["step"]
    assert len(run.segments) == 1
    assert_reads(run, of_history(history_of(folder)))


@pytest.mark.parametrize("name", TRAINER)
def test_a_history_saved_as_a_table_is_read_as_the_state_is(name: str) -> None:
    run = read_run(SAMPLES / "trainer" / name / "log_history.csv")
    assert run.formats == ("table",)
    assert_reads(run, of_history(history_of(f"trainer/{name}")))


@pytest.mark.parametrize("folder", HISTORIES)
def test_what_a_trainer_prints_between_its_bars_has_the_steps_of_its_state(folder: str) -> None:
    run = read_run(SAMPLES / folder / "stdout.log")
    printed = points_of(row for row in history_of(folder) if "eval_loss" not in row and "loss" in row)
    assert run.formats == ("text", "transformers")
    for name in ("loss", "grad_norm", "learning_rate"):
        assert dict(zip(run[name].step.tolist(), run[name].value.tolist(), strict=True)) == {
            step: float(f"{value:.4g}") for step, value in printed[name].items()
        }
    assert any("step: it is read from the progress bar" in note for note in run.notes)


@pytest.mark.parametrize(
    ("name", "count", "first", "last", "evaluations"),
    [
        ("plain", 12, (5, 4.022081756591797), (60, 2.736761283874512), {}),
        (
            "evaluated",
            12,
            (5, 4.022081756591797),
            (60, 2.7368581771850584),
            {20: 3.230854034423828, 40: 2.830781936645508, 60: 2.7294652462005615},
        ),
        (
            "accumulated",
            12,
            (5, 4.020758056640625),
            (60, 2.700840187072754),
            {16: 3.3947858810424805, 32: 2.918339967727661, 48: 2.7400574684143066, 64: 2.6852355003356934},
        ),
        ("resumed", 10, (5, 4.022081756591797), (50, 2.8834001541137697), {}),
    ],
)
def test_the_trainers_losses_are_these(
    name: str, count: int, first: tuple[int, float], last: tuple[int, float], evaluations: dict[int, float]
) -> None:
    run = read_run(SAMPLES / "trainer" / name / "trainer_state.json")
    loss = run["loss"]
    assert (len(loss), loss.step[0], loss.value[0], loss.step[-1], loss.value[-1]) == (count, *first, *last)
    read = run.series.get("eval_loss")
    assert (dict(zip(read.step.tolist(), read.value.tolist(), strict=True)) if read else {}) == evaluations


def test_a_run_resumed_in_the_same_terminal_has_two_segments() -> None:
    run = read_run(SAMPLES / "trainer" / "resumed" / "stdout.log")
    assert [(segment.first_step, segment.last_step) for segment in run.segments] == [(5, 30), (25, 50)]
    assert any("restarts 1 time(s) (at 25)" in note for note in run.notes)
    assert not any("several writers" in note for note in run.notes)


@pytest.mark.parametrize("name", TRAINER)
def test_the_results_of_a_trainer_are_a_summary(name: str) -> None:
    results = json.loads((SAMPLES / "trainer" / name / "all_results.json").read_text())
    run = read_run(SAMPLES / "trainer" / name / "all_results.json")
    assert run.records == 1
    assert {metric: one.value.tolist() for metric, one in run.series.items()} == {
        f"summary/{metric}": [value] for metric, value in results.items() if metric != "epoch"
    }


@pytest.mark.parametrize("name", TRAINER)
def test_a_trainers_folder_is_one_run_that_counts_nothing_twice(name: str) -> None:
    run = read_run(SAMPLES / "trainer" / name)
    state = read_run(SAMPLES / "trainer" / name / "trainer_state.json")
    assert run.records == state.records
    for metric, one in state.series.items():
        assert run[metric].value.tolist() == one.value.tolist()


@pytest.mark.parametrize(
    ("name", "kind"),
    [("sft", "sft"), ("dpo", "preference"), ("kto", "preference"), ("grpo", "grpo"), ("rloo", "grpo")],
)
def test_a_trl_trainer_is_known_by_its_metrics(name: str, kind: str) -> None:
    assert read_run(SAMPLES / "trl" / name / "trainer_state.json").kind == kind
    assert read_run(SAMPLES / "trl" / name / "stdout.log").kind == kind


KERAS = {"val_loss": "eval_loss", "val_accuracy": "eval_accuracy"}


def test_the_table_of_keras_is_read_by_epochs() -> None:
    table = pd.read_csv(SAMPLES / "keras" / "training.csv")
    run = read_run(SAMPLES / "keras" / "training.csv")
    assert (run.step_name, run.records, len(run.segments)) == ("epoch", 6, 1)
    assert run["loss"].value.tolist()[:2] == [0.6894413828849792, 0.6244011521339417]
    assert_reads(run, points_of(table.to_dict("records"), "epoch", KERAS))


@pytest.mark.parametrize("name", ["bars", "lines"])
def test_what_keras_prints_is_its_table_rounded(name: str) -> None:
    table = pd.read_csv(SAMPLES / "keras" / "training.csv")
    run = read_run(SAMPLES / "keras" / f"{name}.log")
    assert run.formats == ("text", "keras")
    assert (run.step_name, run.records) == ("epoch", 6)
    assert run.notes == ("left out what Keras' evaluate() printed: it is not of the epoch under which it stands",)
    counted = table.assign(epoch=table["epoch"] + 1).round(4)
    assert_reads(run, points_of(counted.to_dict("records"), "epoch", KERAS))


def test_a_table_of_keras_that_was_appended_to_holds_two_runs() -> None:
    table = pd.read_csv(SAMPLES / "keras" / "appended.csv")
    run = read_run(SAMPLES / "keras" / "appended.csv")
    assert [(attempt.first_step, attempt.last_step) for attempt in run.attempts] == [(0, 5), (0, 3)]
    assert run["loss"].value.tolist() == table["loss"].tolist()[6:]


LIGHTNING = {"train_loss_step": "loss", "val_loss": "eval_loss", "val_acc": "eval_accuracy", "lr-Adam": "learning_rate"}


def test_the_table_of_lightning_keeps_steps_apart_from_epochs() -> None:
    table = pd.read_csv(SAMPLES / "lightning" / "metrics.csv")
    run = read_run(SAMPLES / "lightning" / "metrics.csv")
    assert (run.step_name, run.records, len(run.segments)) == ("step", 28, 1)
    assert run["loss"].step.tolist() == list(range(3, 64, 4))
    assert run["eval_loss"].step.tolist() == [15, 31, 47, 63]
    assert run.config == {"learning_rate": 0.01}
    assert_reads(run, points_of(table.to_dict("records"), "step", LIGHTNING))


def test_the_bar_of_lightning_tells_each_number_once() -> None:
    table = pd.read_csv(SAMPLES / "lightning" / "metrics.csv")
    run = read_run(SAMPLES / "lightning" / "stdout.log")
    assert run.formats == ("text", "lightning")
    assert (run.records, len(run.segments)) == (16, 1)
    for name, column in (
        ("loss", "train_loss_step"),
        ("eval_loss", "val_loss"),
        ("eval_accuracy", "val_acc"),
        ("train_loss_epoch", "train_loss_epoch"),
    ):
        logged = table[["step", column]].dropna()
        # Lightning logs step 15 in what its bar calls 16/16.
        assert run[name].step.tolist() == (logged["step"] + 1).tolist()
        assert run[name].value.tolist() == pytest.approx(logged[column].tolist(), abs=5.1e-4)


def test_the_bars_of_rich_are_read_though_their_metrics_are_wrapped() -> None:
    table = pd.read_csv(SAMPLES / "lightning" / "metrics.csv")
    run = read_run(SAMPLES / "lightning" / "rich.log")
    assert run.formats == ("text", "lightning")
    assert (run.step_name, run.records, len(run.segments)) == ("step", 4, 1)
    for name, column in (("eval_loss", "val_loss"), ("eval_accuracy", "val_acc"), ("train_loss_epoch",) * 2):
        assert run[name].step.tolist() == [16, 32, 48, 64]
        assert run[name].value.tolist() == pytest.approx(table[column].dropna().tolist(), abs=5.1e-4)


def test_a_run_of_lightning_that_goes_on_in_a_later_epoch_counts_from_epoch_zero(tmp_path: Path) -> None:
    log = (SAMPLES / "lightning" / "rich.log").read_text()
    (tmp_path / "resumed.log").write_text(log[log.index("Epoch 2/3") :])
    assert read_run(tmp_path / "resumed.log")["eval_loss"].step.tolist() == [48, 64]


FASTAI = {
    "train_loss": "loss",
    "valid_loss": "eval_loss",
    "accuracy": "eval_accuracy",
    "error_rate": "eval_error_rate",
}


def test_the_history_of_fastai_and_the_table_that_it_prints_are_read() -> None:
    table = pd.read_csv(SAMPLES / "fastai" / "history.csv").drop(columns="time")
    run = read_run(SAMPLES / "fastai" / "history.csv")
    assert (run.step_name, run.records) == ("epoch", 5)
    assert_reads(run, points_of(table.to_dict("records"), "epoch", FASTAI))
    printed = read_run(SAMPLES / "fastai" / "stdout.log")
    told = ("accuracy, error_rate: read as of validation, as fastai logs them",)
    assert (printed.step_name, printed.records, printed.notes) == ("epoch", 5, told)
    assert_reads(printed, points_of(table.round(6).to_dict("records"), "epoch", FASTAI))


def test_what_fastai_prints_without_bars_has_no_names_and_that_is_told() -> None:
    table = pd.read_csv(SAMPLES / "fastai" / "history.csv")
    run = read_run(SAMPLES / "fastai" / "without_bars.log")
    assert (run.step_name, run.records) == ("epoch", 5)
    assert set(run.series) == {"loss", "eval_loss", "metric_1", "metric_2"}
    for name, column in (("loss", "train_loss"), ("eval_loss", "valid_loss"), ("metric_1", "accuracy")):
        assert run[name].value.tolist() == pytest.approx(table[column].tolist())
    assert any("guessed" in note for note in run.notes)


MMENGINE = {"lr": "learning_rate", "time": "step_time"}


def test_the_scalars_of_mmengine_put_validations_at_their_training_step() -> None:
    rows = [json.loads(line) for line in (SAMPLES / "mmengine" / "scalars.json").read_text().splitlines()]
    run = read_run(SAMPLES / "mmengine" / "scalars.json")
    assert run.formats == ("mmengine",)
    assert (run.step_name, run.records, len(run.segments)) == ("step", 20, 1)
    training = points_of(
        ({k: v for k, v in row.items() if k != "iter"} for row in rows if "iter" in row), names=MMENGINE
    )
    validation = [row for row in rows if "iter" not in row]
    for name in ("accuracy", "data_time", "time"):
        training[f"eval_{name}"] = {16.0 * row["step"]: row[name] for row in validation}
    assert [row["step"] for row in validation] == [1, 2, 3, 4]  # epochs
    assert_reads(run, training)
    assert any("validations count epochs" in note for note in run.notes)


def test_a_validation_of_mmengine_in_a_loop_that_counts_iterations_stands_at_its_step() -> None:
    run = read_run(SAMPLES / "mmengine" / "iterations.log")
    scalars = read_run(SAMPLES / "mmengine" / "iterations.json")
    assert len(run.segments) == len(scalars.segments) == 1
    assert run["loss"].step.tolist() == scalars["loss"].step.tolist() == [10, 20, 30, 40, 50, 60]
    for one in (run, scalars):
        assert one["eval_accuracy"].step.tolist() == [20, 40, 60]
        assert one["eval_accuracy"].value.tolist() == pytest.approx([0.8594, 0.9062, 0.9141], abs=5.1e-5)


@pytest.mark.parametrize("name", ["run.log", "stdout.log"])
def test_the_text_of_mmengine_is_its_scalars_rounded(name: str) -> None:
    scalars = read_run(SAMPLES / "mmengine" / "scalars.json")
    run = read_run(SAMPLES / "mmengine" / name)
    assert run.formats == ("text", "mmengine")
    assert (run.records, len(run.segments)) == (16, 1)
    assert set(run.series) == set(scalars.series)
    for metric, one in run.series.items():
        assert one.step.tolist() == scalars[metric].step.tolist()
        assert one.value.tolist() == pytest.approx(scalars[metric].value.tolist(), abs=5.1e-5)


BASELINES = {
    "rollout/ep_rew_mean": "reward",
    "rollout/ep_len_mean": "episode_length",
    "time/time_elapsed": "elapsed",
    "train/learning_rate": "learning_rate",
    "train/loss": "loss",
    "train/value_loss": "value_loss",
    "train/policy_gradient_loss": "policy_loss",
    "train/approx_kl": "approx_kl",
    "train/clip_fraction": "clip_ratio",
    "train/explained_variance": "explained_variance",
    "train/entropy_loss": "entropy",
    "train/n_updates": "n_updates",
    "train/clip_range": "clip_range",
}


@pytest.mark.parametrize("name", ["ppo", "dqn"])
@pytest.mark.parametrize(
    ("file", "load"),
    [("progress.csv", pd.read_csv), ("progress.json", lambda path: pd.read_json(path, lines=True, precise_float=True))],
)
def test_stable_baselines_is_read_by_environment_steps(
    name: str, file: str, load: Callable[[Path], pd.DataFrame]
) -> None:
    table = load(SAMPLES / "stable_baselines3" / name / file)
    if "train/entropy_loss" in table:
        table["train/entropy_loss"] *= -1  # logged as minus the entropy
    run = read_run(SAMPLES / "stable_baselines3" / name / file)
    assert (run.kind, run.step_name, run.records, len(run.segments)) == ("rl", "step", len(table), 1)
    assert_reads(run, points_of(table.to_dict("records"), "time/total_timesteps", BASELINES))


@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_the_boxes_of_stable_baselines_are_its_table_rounded(name: str) -> None:
    table = read_run(SAMPLES / "stable_baselines3" / name / "progress.csv")
    run = read_run(SAMPLES / "stable_baselines3" / name / "stdout.log")
    assert (run.kind, run.step_name, run.records) == ("rl", "step", table.records)
    assert set(run.series) == set(table.series)
    for metric, one in run.series.items():
        assert one.step.tolist() == table[metric].step.tolist()
        assert one.value.tolist() == pytest.approx(table[metric].value.tolist(), rel=5.1e-3)


def test_an_episode_monitor_of_stable_baselines_counts_environment_steps() -> None:
    file = SAMPLES / "stable_baselines3" / "ppo" / "0.monitor.csv"
    table = pd.read_csv(file, comment="#")
    run = read_run(file)
    assert run["reward"].step.tolist() == table["l"].cumsum().tolist()
    assert run["reward"].value.tolist() == table["r"].tolist()
    assert any("monitor" in note for note in run.notes)


def test_the_results_of_ultralytics_are_read_by_epochs() -> None:
    table = pd.read_csv(SAMPLES / "ultralytics" / "results.csv")
    names = {"time": "elapsed", "lr/pg0": "learning_rate"}
    names |= {name: name.removeprefix("train/") for name in map(str, table) if name.startswith("train/")}
    names |= {name: name.replace("val/", "eval_") for name in map(str, table) if name.startswith("val/")}
    run = read_run(SAMPLES / "ultralytics" / "results.csv")
    assert (run.step_name, run.records, run.first_step, run.last_step) == ("epoch", 8, 1, 8)
    points = points_of(table.to_dict("records"), "epoch", names)
    for total, part in (("loss", "{}_loss"), ("eval_loss", "eval_{}_loss")):
        parts = [points[part.format(name)] for name in ("box", "cls", "dfl")]
        points[total] = {epoch: sum(one[epoch] for one in parts) for epoch in parts[0]}
    assert_reads(run, points)


def test_the_summary_of_timm_is_read_in_percent() -> None:
    table = pd.read_csv(SAMPLES / "timm" / "summary.csv")
    names = {"train_loss": "loss", "eval_top1": "eval_accuracy", "lr": "learning_rate"}
    run = read_run(SAMPLES / "timm" / "summary.csv")
    assert (run.step_name, run.records, run.first_step, run.last_step) == ("epoch", 8, 0, 7)
    assert_reads(run, points_of(table.to_dict("records"), "epoch", names))
    assert any("eval_top1: in percent" in note for note in run.notes)


def test_what_accelerate_sends_to_tensorboard_is_read() -> None:
    run = read_run(SAMPLES / "accelerate" / "events.out.tfevents.sample")
    assert (run.formats, run.step_name, run.records, len(run.segments)) == (("tensorboard",), "step", 64, 1)
    assert run["loss"].step.tolist() == list(range(1, 65))
    assert run["epoch"].value.tolist() == [step // 16 for step in range(64)]


def test_no_sample_names_a_machine() -> None:
    private = ("/home/", "/root", "/tmp", "/work", "/Users/")  # noqa: S108
    files = [path for path in SAMPLES.rglob("*") if path.is_file() and "make" not in path.parts]
    packages = {path.relative_to(SAMPLES).parts[: 2 if path.is_relative_to(SAMPLES / "far") else 1] for path in files}
    assert sum(path.stat().st_size for path in files) < 10_000 * len(packages)
    assert not [path.name for path in files for word in private if word.encode() in path.read_bytes()]
