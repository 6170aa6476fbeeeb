"""What little-used frameworks write (see far.md): each value is held to the log's own."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from tests.logs.far_trackers import RUNS, TRACKERS

from mldebug_mcp import diagnose_run
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import clean
from mldebug_mcp.logs import read_run
from mldebug_mcp.logs.run import Series

FAR = Path(__file__).parent / "samples" / "far"
KINDS = ("healthy", "diverged")
DIVERGING = {"lr_too_high", "exploding_gradients"}


class Printed(NamedTuple):
    """What a framework prints: what its steps are, the pattern of the step, and that of each metric by name."""

    step_name: str
    step: str
    metrics: dict[str, str]


PRINTED = {
    "boltzmann_machine": Printed(
        "step",
        r"Iteration (\d+),",
        {"pseudo-likelihood": r"pseudo-likelihood = ([^,]+),", "step_time": r"time = (\S+)s$"},
    ),
    "deepctr_torch": Printed(
        "epoch",
        r"^Epoch (\d+)/",
        {
            "loss": r"- loss: +(\S+)",
            "auc": r" auc: +(\S+)",
            "eval_auc": r"val_auc: +(\S+)",
            "eval_binary_crossentropy": r"val_binary_crossentropy: +(\S+)",
        },
    ),
    "hmmlearn": Printed("step", r"^ +(\d+) ", {"value": r"^ +\d+ +(\S+) ", "column_3": r"(\S+)$"}),
    "k_means": Printed("step", r"^Iteration (\d+),", {"loss": r"inertia (\S+)\.$"}),
    "gplearn": Printed("step", r"^ +(\d+) ", {"best_program": r"^ +\d+ +\S+ +\S+ +\d+ +(\S+)"}),
    "pyod": Printed("epoch", r"^Epoch (\d+)/", {"loss": r"loss=([^,]+),"}),
    "joeynmt": Printed(
        "step",
        r"Step: +(\d+),",
        {
            "loss": r"Batch Loss: +([^,]+),",
            "learning_rate": r"Lr: (\S+)$",
            "eval_loss": r"\(greedy\).* loss: +([^,]+),",
            "eval_ppl": r"\(greedy\).* ppl: +([^,]+),",
        },
    ),
    "mushroom_rl": Printed("epoch", r"Epoch (\d+) ", {"J": r"J: (\S+)", "R": r"R: (\S+)$"}),
    "pomegranate": Printed(
        "step", r"^\[(\d+)\]", {"Improvement": r"Improvement: ([^,]+),", "step_time": r"Time: (\S+)s$"}
    ),
    "opennmt": Printed(
        "step",
        r"Step (\d+)/",
        {
            "accuracy": r"Step.* acc: ([^;]+);",
            "ppl": r"Step.* ppl: +([^;]+);",
            "loss": r"xent: ([^;]+);",
            "learning_rate": r"lr: ([^;]+);",
            "eval_perplexity": r"Validation perplexity: (\S+)",
            "eval_accuracy": r"Validation accuracy: (\S+)",
        },
    ),
    "torchtune": Printed(
        "step", r"^Step (\d+) ", {"loss": r"loss:(\S+)", "learning_rate": r"lr:(\S+)", "grad_norm": r"grad_norm:(\S+)"}
    ),
    "stanza": Printed(
        "step",
        r"STEP (\d+)/",
        {"loss": r"STEP.* loss = (\S+)", "learning_rate": r" lr: (\S+)$", "eval_score": r"dev_score = (\S+)"},
    ),
    "brain_js": Printed("step", r"iterations: (\d+),", {"loss": r"training error: (\S+)"}),
    "coqui_trainer": Printed(
        "step",
        r"GLOBAL_STEP: (\d+)",
        {"loss": r"\| > loss: (\S+)", "learning_rate": r"current_lr: (\S+)", "eval_loss": r"avg_loss:\s*(\S+)"},
    ),
    "d3rlpy": Printed("step", r" step=(\d+)$", {"loss": r"'loss': ([^,}]+)"}),
    "darknet": Printed("step", r"^(\d+), \S+: ", {"loss": r"^\d+, \S+: (\S+),", "learning_rate": r"avg, (\S+) rate"}),
    "gradient_boosting": Printed("step", r"^ +(\d+) +\S+ +\S+s$", {"loss": r"^ +\d+ +(\S+) +\S+s$"}),
    "hist_gradient_boosting": Printed(
        "step", r"^\[(\d+)/", {"loss": r"train loss: ([\d.]+)", "eval_loss": r"val loss: ([\d.]+)"}
    ),
    "labml": Printed(
        "step", r"^ *(\d+): ", {"loss": r"loss\.train: +(\S+)", "eval_accuracy": r"accuracy\.valid: +(\S+)"}
    ),
    "liblinear": Printed("step", r"^iter +(\d+)", {"loss": r"^iter.* f (\S+)", "grad_norm": r"^iter.*\|g\| (\S+)"}),
    "lightgbm": Printed("step", r"^\[(\d+)\]", {"loss": r"train's \w+: (\S+)", "eval_loss": r"valid's \w+: (\S+)"}),
    "mlx_lm": Printed("step", r"^ +(\d+) +\S+ [▼▲]", {"loss": r"^ +\d+ +(\S+) [▼▲]"}),
    "mlp_classifier": Printed("step", r"^Iteration (\d+)", {"loss": r"loss = (\S+)"}),
    "ngboost": Printed("step", r"^\[iter (\d+)\]", {"loss": r" loss=(\S+)", "grad_norm": r" norm=(\S+)"}),
    "pytorch_pfn_extras": Printed("step", r"^.*?\d+ +(\d+) +[\dn]", {"loss": r"^.*?\d+ +\d+ +(\S+)"}),
    "river": Printed("step", r"^\[([\d,]+)\]", {"loss": r"LogLoss: (\S+)"}),
    "rsl_rl": Printed(
        "step", r"Learning iteration (\d+)/", {"reward": r"Mean reward: (\S+)", "value_loss": r"Mean value loss: (\S+)"}
    ),
    "sgd_classifier": Printed(
        "epoch", r"^-- Epoch (\d+)", {"loss": r"Avg\. loss: (\S+),", "weight_norm": r"^Norm: (\S+),"}
    ),
    "skorch": Printed(
        "epoch",
        r"^ +(\d+) +\d",
        {
            "loss": r"^ +\d+ +\S+ +(\S+)",
            "eval_loss": r"^ +\d+ +\S+ +\S+ +\S+ +(\S+)",
            "learning_rate": r"([\d.]+) +[\d.]+$",
        },
    ),
    "spacy": Printed("step", r"^ +\d+ +(\d+) +[\d.]+ ", {"loss": r"^ +\d+ +\d+ +([\d.]+) "}),
    "stable_baselines3": Printed("step", r"total_timesteps +\| (\S+)", {"reward": r"ep_rew_mean +\| (\S+)"}),
    "tabnet": Printed("epoch", r"^epoch (\d+) ", {"loss": r"\| loss: ([\d.]+)"}),
    "tensorflow_js": Printed("epoch", r"^(\d+) {", {"loss": r"^  loss: (\S+?),", "eval_loss": r"^  val_loss: (\S+?),"}),
    "tsne": Printed("step", r"Iteration (\d+):", {"loss": r"error = ([^,]+),", "grad_norm": r"norm = (\S+)"}),
    "vowpal_wabbit": Printed("sample", r"^\S+ \S+ +(\d+) ", {"loss": r"^(\d\.\d+) \S+ +\d+ "}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("framework", PRINTED)
def test_every_value_a_framework_prints_is_read(framework: str, kind: str) -> None:
    printed, path = PRINTED[framework], FAR / framework / f"{kind}.log"
    text = clean(path.read_text().replace("\r", "\n"))
    steps = [float(one.replace(",", "")) for one in re.findall(printed.step, text, re.MULTILINE)]
    run = read_run(path)
    steps = steps[: run.records]  # LightGBM prints its best iteration once more
    assert (run.step_name, len(run.attempts)) == (printed.step_name, 1)
    for name, pattern in printed.metrics.items():
        values = [float(one.replace(",", "")) for one in re.findall(pattern, text, re.MULTILINE)][: len(steps)]
        if not name.startswith("eval_"):
            assert run[name].step.tolist() == steps
        np.testing.assert_array_equal(run[name].value, values)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("framework", ["visualdl", "polyaxon"])
def test_every_value_a_tracker_logged_is_read(framework: str, kind: str) -> None:
    run = read_run(FAR / framework / kind)
    np.testing.assert_allclose(run["loss"].value, RUNS[kind][0], rtol=1e-6)
    assert run["loss"].step.tolist() == list(range(20))


@pytest.mark.parametrize("kind", KINDS)
def test_the_parameters_of_polyaxon_are_settings(kind: str) -> None:
    run = read_run(FAR / "polyaxon" / kind)
    assert run.setting("learning_rate") == (0.001 if kind == "healthy" else 1.0)
    assert run.setting("per_device_train_batch_size") == 32


def test_the_file_of_ray_tune_that_keeps_nan_is_read() -> None:
    folder = FAR / "ray_tune" / "diverged"
    logged = [json.loads(line)["loss"] for line in (folder / "result.json").read_text().splitlines()]
    run = read_run(folder)
    np.testing.assert_array_equal(run["loss"].value, logged)
    assert run["loss"].step.tolist() == list(range(20))
    assert any("leaves out 11 value(s) of loss that are not finite" in note for note in run.notes)
    assert run.setting("learning_rate") == 50.0


def test_the_exact_numbers_of_ray_tune_are_read_and_no_step_twice() -> None:
    run = read_run(FAR / "ray_tune" / "healthy")
    assert run["loss"].value[0] == pytest.approx(7.29, abs=1e-12)
    assert (run.first_step, run.last_step) == (0, 19)


def test_a_state_of_ray_tune_is_no_run(tmp_path: Path) -> None:
    trial = tmp_path / "trial_1"
    trial.mkdir()
    (trial / "result.json").write_text((FAR / "ray_tune" / "healthy" / "result.json").read_text())
    state = {"trial_data": [], "stats": {"start_time": 1.0, "loss": 3.0}, "runner_data": {"loss": 1.0}}
    (tmp_path / "experiment_state-2026-11-28_09-30-48.json").write_text(json.dumps(state))
    assert len(read_run(tmp_path)["loss"]) == 20


@pytest.mark.parametrize("kind", KINDS)
def test_a_bar_of_ignite_in_a_pipe_is_one_record_for_each_iteration(kind: str) -> None:
    run = read_run(FAR / "ignite" / f"{kind}.log")
    assert run["loss"].step.tolist() == list(range(1, 49))
    assert run["eval_loss"].step.tolist() == [16, 32, 48]
    assert math.isnan(run["loss"].value[-1]) == (kind == "diverged")


@pytest.mark.parametrize("kind", KINDS)
def test_the_evaluation_of_paddle_is_apart_from_training(kind: str) -> None:
    run = read_run(FAR / "paddle" / f"{kind}.log")
    assert len(run.attempts) == 1
    assert run["loss"].step.tolist() == list(range(2, 62, 2))
    assert run["eval_loss"].step.tolist() == [10, 20, 30, 40, 50, 60]


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_that_names_validation_is_of_it(kind: str) -> None:
    run = read_run(FAR / "mlx_lm" / f"{kind}.log")
    assert run["eval_loss"].step.tolist() == [10, 20]
    np.testing.assert_array_equal(run["eval_loss"].value, [1.091, 0.511] if kind == "healthy" else [math.nan] * 2)
    assert run["tok/s"].value.tolist() == [1201.0 + step for step in range(20)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_two_files_of_flair_are_one_run(kind: str) -> None:
    folder = FAR / "flair" / kind
    rows = [line.split("\t") for line in (folder / "loss.tsv").read_text().splitlines()]
    run = read_run(folder)
    np.testing.assert_allclose(run["eval_loss"].value, [float(row[4]) for row in rows[1:]], atol=1e-4)
    np.testing.assert_allclose(run["eval_f1"].value, [float(row[7]) for row in rows[1:]])
    assert run["eval_loss"].step.tolist() == [10, 20, 30, 40, 50]


COLUMNS = {
    "pytorch_pfn_extras": ("json", "iteration", "train/loss", "val/loss"),
    "poutyne": ("csv", "epoch", "loss", "val_loss"),
}
"""Frameworks that write a table or a list: its ending, what its steps and both losses are called in it."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("framework", COLUMNS)
def test_every_value_of_a_table_is_read(framework: str, kind: str) -> None:
    ending, step, *losses = COLUMNS[framework]
    path = FAR / framework / f"{kind}.{ending}"
    frame = pd.read_json(path, precise_float=True) if ending == "json" else pd.read_csv(path)
    run = read_run(path)
    for name, column in zip(("loss", "eval_loss"), losses, strict=True):
        logged = frame[[step, column]].dropna(subset=[step])
        if kind == "healthy":
            logged = logged.dropna()
            assert run[name].step.tolist() == logged[step].tolist()
            np.testing.assert_allclose(run[name].value, logged[column], rtol=1e-12)
    assert math.isnan(run["loss"].value[-1]) == (kind == "diverged")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("framework", "files"), [("catalyst", "{}.csv"), ("graphgym", "{}/stats.json")])
def test_the_tables_of_training_and_validation_are_one_run(framework: str, files: str, kind: str) -> None:
    sets = {"loss": "train", "eval_loss": "valid" if framework == "catalyst" else "val"}
    for run in (read_run(FAR / framework / kind), read_run(FAR / framework / f"{kind}.log")):
        for name, set_name in sets.items():
            path = FAR / framework / kind / files.format(set_name)
            frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_json(path, lines=True, precise_float=True)
            np.testing.assert_allclose(run[name].value, frame["loss"].astype(float), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_curves_of_d3rlpy_are_one_run(kind: str) -> None:
    folder = FAR / "d3rlpy" / kind
    rows = [line.split(",") for line in (folder / "loss.csv").read_text().splitlines()]
    run = read_run(folder)
    assert run["loss"].step.tolist() == [50.0 * (at + 1) for at in range(10)]
    assert run["loss"].value.tolist() == [float(row[2]) for row in rows]
    assert run["epoch"].value.tolist() == [float(row[0]) for row in rows]
    assert run.setting("learning_rate") == pytest.approx(6e-5 if kind == "healthy" else 0.06)
    assert run.setting("per_device_train_batch_size") == 32
    assert run.runs_in_folder == 1
    alone = read_run(folder / "loss.csv")
    assert alone["loss"].value.tolist() == run["loss"].value.tolist()
    assert alone["loss"].step.tolist() == run["loss"].step.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_the_bars_of_poutyne_count_validation_apart(kind: str) -> None:
    text = (FAR / "poutyne" / f"{kind}.log").read_text()
    run = read_run(FAR / "poutyne" / f"{kind}.log")
    batches = re.findall(r"ETA: \S+ loss: (\S+)", text)
    assert run["loss"].step.tolist() == list(range(1, 91))
    np.testing.assert_array_equal(run["loss"].value, [float(one) for one in batches])
    assert run["eval_loss"].step.tolist() == [15, 30, 45, 60, 75, 90]
    np.testing.assert_array_equal(
        run["eval_loss"].value, [float(one) for one in re.findall(r"Val steps.*val_loss: (\S+)", text)]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_bars_of_torchbearer_count_epochs_in_front(kind: str) -> None:
    run = read_run(FAR / "torchbearer" / f"{kind}.log")
    assert len(run.attempts) == 1
    text = (FAR / "torchbearer" / f"{kind}.log").read_text().replace("\r", "\n")
    drawn = re.findall(r"^(\d)/5\(t\):.*\| (\d+)/15 \[.*running_loss=([^\],]+)", text, re.MULTILINE)
    _are_drawn_there(run["running_loss"], {15 * int(epoch) + int(at): float(loss) for epoch, at, loss in drawn})
    assert run["eval_loss"].step.tolist() == [15, 30, 45, 60, 75]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("library", "count"), [("implicit", 12), ("cornac", 20)])
def test_a_bar_shows_the_loss_at_its_count(library: str, count: int, kind: str) -> None:
    text = (FAR / library / f"{kind}.log").read_text().replace("\r", "\n")
    drawn = re.findall(rf"\| (\d+)/{count} \[.*loss=([^\],]+)", text)
    _are_drawn_there(read_run(FAR / library / f"{kind}.log")["loss"], {int(at): float(loss) for at, loss in drawn})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("file", ["{}.log", "{}.txt"])
def test_what_composer_counts_is_no_time(file: str, kind: str) -> None:
    path = FAR / "composer" / file.format(kind)
    run = read_run(path)
    in_file = re.findall(r"batch=(\d+)\]: loss/train/total: (\S+)", path.read_text())
    losses = [loss for _, loss in in_file] or re.findall(r"loss/train/total: (\S+)", path.read_text())
    np.testing.assert_array_equal(run["loss"].value, [float(loss) for loss in losses])
    steps = [float(step) for step, _ in in_file] or [1, 5, 10, 15, 20, 25, 30, 35, 40, 45]
    assert run["loss"].step.tolist() == steps
    assert "step_time" not in run.series
    assert diagnose_run(path).hypotheses[0].cause in ({"healthy"} if kind == "healthy" else DIVERGING)


@pytest.mark.parametrize("kind", KINDS)
def test_the_embedding_loss_of_setfit_is_read_with_its_evaluations(kind: str) -> None:
    text = (FAR / "setfit" / f"{kind}.log").read_text()
    run = read_run(FAR / "setfit" / f"{kind}.log")
    for name, pattern in (("loss", r"'embedding_loss': '([^']+)'"), ("eval_loss", r"'eval_embedding_loss': '([^']+)'")):
        np.testing.assert_array_equal(run[name].value, [float(loss) for loss in re.findall(pattern, text)])
    assert run["loss"].step.tolist() == [1, *range(2, 21, 2)]
    assert run["eval_loss"].step.tolist() == [5, 10, 15, 20]


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_of_rllib_is_read_with_its_settings(kind: str) -> None:
    folder = FAR / "rllib" / kind
    frame = pd.read_csv(folder / "progress.csv")
    run = read_run(folder)
    assert run["loss"].step.tolist() == frame["num_env_steps_sampled_lifetime"].tolist()
    columns = {"loss": "total_loss", "policy_loss": "policy_loss", "value_loss": "vf_loss", "kl": "mean_kl_loss"}
    for name, column in columns.items():
        np.testing.assert_allclose(run[name].value, frame[f"learners/default_policy/{column}"], rtol=1e-12)
    np.testing.assert_allclose(run["reward"].value, frame["env_runners/episode_return_mean"], rtol=1e-12)
    assert run.setting("per_device_train_batch_size") == 64
    assert run.setting("learning_rate") == pytest.approx(3e-4 if kind == "healthy" else 0.3)
    assert run.setting("max_steps") is None


def test_the_iterations_that_rllib_counts_are_no_setting(tmp_path: Path) -> None:
    config = json.loads((FAR / "rllib" / "healthy" / "params.json").read_text())
    rows = [{"training_iteration": at, "learners": {"total_loss": 1 / at}, "config": config} for at in range(1, 9)]
    (tmp_path / "result.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    run = read_run(tmp_path)
    assert run.setting("max_steps") is None
    assert run.setting("learning_rate") == pytest.approx(3e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_of_neuralforecast_is_read_with_its_settings(kind: str) -> None:
    frame = pd.read_csv(FAR / "neuralforecast" / kind / "metrics.csv")
    run = read_run(FAR / "neuralforecast" / kind)
    trained, evaluated = (frame.dropna(subset=[name]) for name in ("train_loss_epoch", "valid_loss"))
    np.testing.assert_allclose(run["loss"].value, trained["train_loss_epoch"], rtol=1e-12)
    np.testing.assert_allclose(run["eval_loss"].value, evaluated["valid_loss"], rtol=1e-12)
    assert run["eval_loss"].step.tolist() == evaluated["step"].tolist()
    assert run.setting("learning_rate") == (0.001 if kind == "healthy" else 1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_losses_that_ctgan_shows_before_its_bar_are_of_the_epoch_that_is_counted_next(kind: str) -> None:
    text = (FAR / "ctgan" / f"{kind}.log").read_text().replace("\r", "\n")
    drawn = re.findall(r"Gen\. \((\S+)\) \| Discrim\. \((\S+)\):.*\| +(\d+)/12", text)
    last = {int(at): (float(one), float(other)) for one, other, at in drawn}
    run = read_run(FAR / "ctgan" / f"{kind}.log")
    assert run["Gen_loss"].step.tolist() == list(range(1, 13))
    assert run["Gen_loss"].value.tolist() == [last[at][0] for at in range(12)]
    assert run["Discrim_loss"].value.tolist() == [last[at][1] for at in range(12)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_mean_over_steps_that_the_bar_of_numpyro_shows_is_the_loss(kind: str) -> None:
    text = (FAR / "numpyro" / f"{kind}.log").read_text().replace("\r", "\n")
    drawn = re.findall(r"\| (\d+)/400 \[.*avg\. loss \[[\d-]+\]: ([^\]]+)", text)
    run = read_run(FAR / "numpyro" / f"{kind}.log")
    assert run["loss"].step.tolist() == [float(at) for at, _ in drawn]
    np.testing.assert_array_equal(run["loss"].value, [float(value) for _, value in drawn])


@pytest.mark.parametrize("kind", KINDS)
def test_the_terms_of_a_loss_of_deepxde_are_added(kind: str) -> None:
    text = (FAR / "deepxde" / f"{kind}.log").read_text()
    rows = re.findall(r"^(\d+) +\[(\S+), (\S+)\] +\[(\S+), (\S+)\] +\[(\S+)\]", text, re.MULTILINE)
    values = np.array(rows, float)
    run = read_run(FAR / "deepxde" / f"{kind}.log")
    assert run["loss"].step.tolist() == values[:, 0].tolist()
    np.testing.assert_allclose(run["loss"].value, values[:, 1] + values[:, 2], rtol=1e-12)
    np.testing.assert_allclose(run["eval_loss"].value, values[:, 3] + values[:, 4], rtol=1e-12)
    np.testing.assert_array_equal(run["Test metric"].value, values[:, 5])


@pytest.mark.parametrize("kind", KINDS)
def test_the_divergence_of_the_last_phase_of_opentsne_is_its_loss(kind: str) -> None:
    text = (FAR / "open_tsne" / f"{kind}.log").read_text()
    rows = re.findall(r"Iteration +(\d+), KL divergence (\S+),", text.rpartition("===> Running optimization")[2])
    run = read_run(FAR / "open_tsne" / f"{kind}.log")
    assert run["loss"].step.tolist() == [float(step) for step, _ in rows]
    assert run["loss"].value.tolist() == [float(value) for _, value in rows]
    assert run.setting("learning_rate") == (300.0 if kind == "healthy" else 300000.0)
    assert (run.records, len(run.attempts)) == (11, 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("library", "evaluated"), [("record_keeper", "eval_loss"), ("torchrl", "eval_reward")])
def test_every_value_in_the_tables_of_a_library_is_read(library: str, evaluated: str, kind: str) -> None:
    run = read_run(FAR / library / kind)
    logged = RUNS[kind][0]
    np.testing.assert_array_equal(run["loss"].value, logged)
    np.testing.assert_array_equal(
        run[evaluated].value, np.array(logged) + 0.1 if evaluated == "eval_loss" else np.arange(20.0)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_of_gluonts_is_read(kind: str) -> None:
    frame = pd.read_csv(FAR / "gluonts" / kind / "metrics.csv")
    run = read_run(FAR / "gluonts" / kind)
    assert run["loss"].value.tolist() == frame["train_loss"].dropna().tolist()
    assert run["eval_loss"].value.tolist() == frame["val_loss"].dropna().tolist()
    assert run["eval_loss"].step.tolist() == frame.loc[frame["val_loss"].notna(), "step"].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_the_statistics_that_pfrl_prints_are_read_from_the_first_update_on(kind: str) -> None:
    text = (FAR / "pfrl" / f"{kind}.log").read_text()
    rows = re.findall(r"average_loss', (?:np\.float\d+\()?([^,)]+)\)?\), \('cumulative_steps', (\d+)\)", text)
    learnt = [(float(step), float(loss)) for loss, step in rows if loss != "nan"]
    run = read_run(FAR / "pfrl" / f"{kind}.log")
    np.testing.assert_array_equal(np.column_stack([run["loss"].step, run["loss"].value]), learnt)
    assert any("NaN before the first update" in note for note in run.notes)


def test_the_rate_that_darknet_prints_is_a_setting() -> None:
    assert read_run(FAR / "darknet" / "diverged.log").setting("learning_rate") == 1.0


def _are_drawn_there(series: Series, drawn: dict[int, float]) -> None:
    """Assert that each value is drawn last at its count; counts that show nothing new may be left out."""
    np.testing.assert_array_equal(series.value, [drawn[int(step)] for step in series.step])
    changes = [at for at in drawn if repr(drawn[at]) != repr(drawn.get(at - 1))]
    assert {*changes, 1} <= {*series.step.tolist()}


@pytest.mark.parametrize("kind", KINDS)
def test_the_lines_of_monai_count_within_epochs(kind: str) -> None:
    text = (FAR / "monai" / f"{kind}.log").read_text()
    run = read_run(FAR / "monai" / f"{kind}.log")
    assert run["loss"].step.tolist() == list(range(1, 61))
    np.testing.assert_array_equal(run["loss"].value, [float(one) for one in re.findall(r"train_loss: (\S+)", text)])


@pytest.mark.parametrize("kind", KINDS)
def test_the_scores_of_pfrl_are_returns_of_evaluations(kind: str) -> None:
    frame = pd.read_csv(FAR / "pfrl" / kind / "scores.txt", sep="\t")
    run = read_run(FAR / "pfrl" / kind)
    assert run["eval_reward"].value.tolist() == frame["mean"].tolist()
    assert run["eval_reward"].step.tolist() == frame["steps"].tolist()
    assert run["loss"].value.tolist() == frame["average_loss"].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_the_time_of_all_updates_of_tianshou_is_no_time_of_one(kind: str) -> None:
    run = read_run(FAR / "tianshou" / kind)
    assert "step_time" not in run
    assert run["eval_reward"].step.tolist() == list(range(0, 2401, 300))
    assert run["epoch"].value.tolist() == list(range(1, 9))


@pytest.mark.parametrize("kind", KINDS)
def test_the_long_table_of_dagshub_is_read(kind: str) -> None:
    run = read_run(FAR / "dagshub" / kind)
    np.testing.assert_array_equal(run["loss"].value, RUNS[kind][0])
    assert run["loss"].step.tolist() == list(range(20))
    assert run.setting("learning_rate") == RUNS[kind][1]
    assert run.setting("per_device_train_batch_size") == 32


@pytest.mark.parametrize("kind", KINDS)
def test_the_flags_of_guild_are_settings(kind: str) -> None:
    run = read_run(FAR / "guild" / kind)
    np.testing.assert_allclose(run["loss"].value, RUNS[kind][0], rtol=1e-6)
    assert run.setting("learning_rate") == RUNS[kind][1]
    assert run.setting("per_device_train_batch_size") == 32


def test_a_gradient_norm_that_is_not_measured_is_left_out() -> None:
    run = read_run(FAR / "coqui_trainer" / "healthy.log")
    assert "grad_norm" not in run
    assert any("grad_norm is 0 at all records" in note for note in run.notes)


def test_the_parameters_that_flair_prints_are_settings() -> None:
    run = read_run(FAR / "flair" / "healthy")
    assert run.setting("learning_rate") == 0.1
    assert run.setting("per_device_train_batch_size") == 8


def test_a_nan_that_ended_fasttext_is_a_loss() -> None:
    assert math.isnan(read_run(FAR / "fasttext" / "diverged.log")["loss"].value[-1])


def test_the_name_of_a_network_in_a_loss_is_that_of_what_it_learns(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("step,Loss / Q-network loss,Reward / Total reward (mean)\n1,0.5,3\n2,0.4,4\n")
    assert read_run(path)["value_loss"].value.tolist() == [0.5, 0.4]


def test_a_loss_that_pytorch_accelerated_says_is_nan_is_read() -> None:
    losses = re.findall(r"train_loss_epoch: (\S+)", (FAR / "pytorch_accelerated" / "healthy.log").read_text())
    run = read_run(FAR / "pytorch_accelerated" / "healthy.log")
    assert run["loss"].value.tolist() == [float(loss) for loss in losses]
    np.testing.assert_array_equal(read_run(FAR / "pytorch_accelerated" / "diverged.log")["loss"].value, [math.nan])


@pytest.mark.parametrize("kind", KINDS)
def test_the_event_files_and_the_exported_scalars_of_tensorboardx_are_one_run(kind: str) -> None:
    run = read_run(FAR / "tensorboardx" / kind)
    logged = np.array(RUNS[kind][0])
    np.testing.assert_allclose(run["loss"].value, logged, rtol=1e-6)
    np.testing.assert_allclose(run["eval_loss"].value, logged + 0.1, rtol=1e-6)


def test_of_two_logs_of_a_loss_the_one_that_holds_nan_leads(tmp_path: Path) -> None:
    losses = [2 / step for step in range(1, 21)]
    (tmp_path / "history.json").write_text(
        json.dumps([{"step": step, "loss": loss} for step, loss in enumerate(losses)])
    )
    rows = "".join(f"{step},{'nan' if step == 12 else loss}\n" for step, loss in enumerate(losses))
    (tmp_path / "metrics.csv").write_text(f"step,loss\n{rows}")
    assert math.isnan(read_run(tmp_path)["loss"].value[12])


def test_a_divergence_that_scvi_logs_as_zero_is_no_policy_that_stands_still() -> None:
    path = FAR / "scvi" / "healthy.csv"
    frame = pd.read_csv(path)
    run, answer = read_run(path), diagnose_run(path)
    np.testing.assert_allclose(run["loss"].value, frame["train_loss"], rtol=1e-12)
    np.testing.assert_allclose(run["eval_loss"].value, frame["validation_loss"], rtol=1e-12)
    assert run["kl"].value.tolist() == frame["kl_global_train"].tolist()
    assert "policy_stands_still" not in {finding.symptom for finding in answer.present}


def test_a_loss_that_mace_prints_is_of_validation(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    line = "INFO: Epoch {0}: head: Default, loss={1:8.8f}, RMSE_E_per_atom={2:8.2f} meV, RMSE_F={2:8.2f} meV / A\n"
    log.write_text("".join(line.format(epoch, 2 / (epoch + 1), 40 / (epoch + 1)) for epoch in range(8)))
    run = read_run(log)
    assert "loss" not in run
    np.testing.assert_allclose(run["eval_loss"].value, [2 / (epoch + 1) for epoch in range(8)], atol=1e-8)


@pytest.mark.parametrize("head", ["", "head: default, "])
def test_a_loss_of_steps_between_the_epochs_of_mace_is_of_training(tmp_path: Path, head: str) -> None:
    log = tmp_path / "run.log"
    step = "INFO: Epoch {0}, step {1}: loss={2}, loss_F=1.5\n"
    end = f"INFO: Epoch {{0}}: {head}loss=  {{1}}, RMSE_F=  40.5 meV / A\n"
    losses = [2 - 0.125 * epoch for epoch in range(8)]
    lines = [
        step.format(epoch, 2 * epoch + 1, loss) + step.format(epoch, 2 * epoch + 2, loss) + end.format(epoch, 1 + loss)
        for epoch, loss in enumerate(losses)
    ]
    log.write_text("".join(lines))
    run = read_run(log)
    assert run["loss"].value.tolist() == [loss for loss in losses for _ in range(2)]
    assert run["eval_loss"].value.tolist() == [1 + loss for loss in losses]


def test_the_lowest_loss_so_far_is_no_loss(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    bar = "{0:3d}%|###| {0}/100 [00:0{1}<00:09, 6.6trial/s, best loss: 0.{2}]\n"
    log.write_text("".join(bar.format(10 * at, at, 90 - 10 * at) for at in range(1, 9)))
    assert "loss" not in read_run(log)


def test_the_trials_that_flaml_lists_are_no_run(tmp_path: Path) -> None:
    log = tmp_path / "search.log"
    row = '{{"record_id": {0}, "iter_per_learner": {0}, "trial_time": 0.4, "validation_loss": 0.{1}, '
    row += '"config": {{"n_estimators": {2}}}, "learner": "rf"}}\n'
    log.write_text("".join(row.format(at, 90 - at, 4 + at) for at in range(9)))
    with pytest.raises(InputError, match="name the log of one trial"):
        read_run(log)


def test_a_study_of_optuna_is_named_as_such() -> None:
    with pytest.raises(InputError, match="name the log of one trial"):
        read_run(FAR / "optuna" / "healthy.log")


@pytest.mark.parametrize("inside", [False, True])
def test_a_repository_of_aim_is_named_with_what_exports_it(tmp_path: Path, *, inside: bool) -> None:
    (tmp_path / ".aim" / "seqs").mkdir(parents=True)
    (tmp_path / ".aim" / "seqs" / "000009.sst").write_bytes(bytes(200))
    with pytest.raises(InputError, match=r"`aim storage reindex`.*query_metrics"):
        read_run(tmp_path / ".aim" if inside else tmp_path)


WITHOUT_LOSS = ("boltzmann_machine", "gplearn", "hmmlearn", "mushroom_rl", "pomegranate")
"""Libraries that print what rises or how much it has risen, and no loss: of their runs nothing is judged."""
HEALTHY = sorted(path.name for path in FAR.iterdir() if path.name not in ("optuna", "fasttext"))


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_run_is_accused_of_nothing(name: str) -> None:
    path = FAR / name / "healthy"
    for found in filter(Path.exists, (path, *(path.with_suffix(f".{ending}") for ending in ("log", "csv", "json")))):
        assert diagnose_run(found).hypotheses[0].cause == ("unknown" if name in WITHOUT_LOSS else "healthy")


def test_each_sample_says_what_made_it() -> None:
    described = re.findall(r"^\| (\w+) \|", (FAR.parent.parent / "far.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {path.name for path in FAR.iterdir()} <= {*TRACKERS, *described}
