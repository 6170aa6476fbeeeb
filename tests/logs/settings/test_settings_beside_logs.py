"""Settings above a log in forms of one's own, in a document of results, and in Python source beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mldebug_mcp.logs import read_run
from mldebug_mcp.logs.settings import settings_printed_in

SETTINGS = {"model": "cnn", "epochs": 12, "batch_size": 64, "optimizer": "adam", "lr": 0.003, "seed": 4}
LINES = "".join(f"Epoch {at}: loss {2 - at / 10:.1f}\n" for at in range(1, 9))


@pytest.mark.parametrize(
    "form",
    [
        "=> {}: {}\n",
        "# {} = {}\n",
        "# {}\t{}\n",
        "- **{}**: {}\n",
        "{:28}{}\n",
        "2025-03-14 08:52:41,609 [INFO] trainer: cfg.{} = {}\n",
        "\x1b[1m{}: {}\x1b[0m\n",
    ],
)
def test_settings_above_a_log_are_read_in_many_forms(tmp_path: Path, form: str) -> None:
    (tmp_path / "train.log").write_text("".join(form.format(*item) for item in SETTINGS.items()) + LINES)
    run = read_run(tmp_path / "train.log")
    assert run.setting("learning_rate") == 0.003
    assert run.setting("num_train_epochs") == 12
    assert len(run["loss"]) == 8


def test_columns_of_a_summary_are_no_settings(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("layer      output      params\nconv1      32x32       896\n" + LINES)
    assert not read_run(tmp_path / "train.log").config


def test_a_document_of_records_holds_its_configuration(tmp_path: Path) -> None:
    log = [{"step": at, "loss": 2 - at / 10} for at in range(1, 9)]
    (tmp_path / "experiment.json").write_text(json.dumps({"settings": SETTINGS, "log": log}))
    run = read_run(tmp_path / "experiment.json")
    assert run.setting("learning_rate") == 0.003
    assert len(run["loss"]) == 8


@pytest.mark.parametrize(
    "source",
    [
        "model = 'cnn'\nepochs = 12\nbatch_size = 64\noptimizer = 'adam'\nlr = 0.003\n",
        "model = 'cnn'\nepochs = 12\nbatch_size = 64\noptimizer = dict(type='adam', lr=0.003)\n",
        "learn = make(model='cnn', epochs=12, batch_size=64, optimizer='adam', lr=0.003, data=load())\nlearn.fit()\n",
    ],
)
def test_settings_are_read_from_python_source_that_is_never_run(tmp_path: Path, source: str) -> None:
    (tmp_path / "train.log").write_text(LINES)
    (tmp_path / "train.py").write_text(f"{source}open({str(tmp_path / 'ran')!r}, 'w')\n")
    run = read_run(tmp_path)
    assert run.setting("learning_rate") == 0.003
    assert run.setting("num_train_epochs") == 12
    assert not (tmp_path / "ran").exists()


def test_source_that_is_none_and_a_script_without_settings_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(LINES)
    (tmp_path / "broken.py").write_text("def (:\n")
    (tmp_path / "deep.py").write_text("x = " + "[" * 5000 + "]" * 5000 + "\n")
    (tmp_path / "train.py").write_text("import torch\n\ndef main(lr=0.1):\n    epochs = 3\n    return lr\n\nmain()\n")
    assert not read_run(tmp_path).config


def test_a_configuration_of_another_form_stands_before_python_source(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(LINES)
    (tmp_path / "cfg.json").write_text(json.dumps(SETTINGS))
    (tmp_path / "train_it.py").write_text("epochs = 99\nbatch_size = 1\noptimizer = 'sgd'\nlr = 9.0\n")
    assert read_run(tmp_path).setting("learning_rate") == 0.003


KEYS = ("lr", "batch", "epochs", "optimizer", "params")
WRITTEN = {
    "0.001": 0.001, "1.0": 1.0, "1": 1, "1e-3": 0.001, "2.5E+02": 250.0, ".5": 0.5, "100_000": 100_000, "-1": -1,
    "None": None, "null": None, "True": None, "auto": None, "cosine": None, "'of a name'": None,
}  # fmt: skip
ON_A_LINE = {
    "Training config: mode {}": (" ", "="),
    "config: {}": ("  ", "="),
    "{}": (" ", "="),
    "[setup] {}": (", ", "="),
    "run with {}": (", ", " = "),
    "Hyperparameters: {}": (", ", ": "),
    "2025-03-14 08:52:41,609 - train - INFO - {}": (" | ", ": "),
    "INFO:root:Settings - {}": ("; ", "="),
    "Config: {}": (", ", " "),
    "Args({})": (", ", "="),
}


@pytest.mark.parametrize("form", ON_A_LINE)
@pytest.mark.parametrize("rate", WRITTEN)
def test_a_line_of_settings_is_read_whatever_its_values_are(rate: str, form: str) -> None:
    between, equals = ON_A_LINE[form]
    values = dict(zip(KEYS, (rate, "64", "12", "Adam", "77322"), strict=True))
    line = form.format(between.join(f"{key}{equals}{value}" for key, value in values.items()))
    found = settings_printed_in([line, "Epoch 1/12 | train loss 2.271 | val loss 2.141"])
    assert (found.number("num_train_epochs"), found.text("optim")) == (12, "adam")
    assert found.number("learning_rate") == WRITTEN[rate]


def test_a_line_of_settings_that_is_not_read_is_mentioned(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("config: lr is 1.0 and the batch has 64 rows\n" + LINES)
    run = read_run(tmp_path / "train.log")
    assert any(note.startswith("line 1 looks like settings and is not read: config: lr is 1.0") for note in run.notes)


def test_records_are_no_settings() -> None:
    lines = [f"step: {at}, lr: 0.001, batch: 64, grad_norm: 1.2" for at in range(9)]
    assert not settings_printed_in(lines)
    assert not settings_printed_in([f"lr=0.001 batch={at} epochs=3 loss=2.5" for at in range(9)])


def test_the_last_record_of_a_log_is_no_settings() -> None:
    records = [f"itr={at} learning_rate={at / 1000} total_loss=4.3 batch=16 grad_clip=1.0" for at in range(1, 9)]
    assert not settings_printed_in(records)
    assert not settings_printed_in(records[-1:])


def test_a_block_of_metrics_is_no_settings() -> None:
    rows = {
        "rollout/": "", "ep_rew_mean": 26.7, "time/": "", "iterations": 2, "total_timesteps": 512, "train/": "",
        "clip_fraction": 0, "clip_range": 0.2, "entropy_loss": -0.693, "learning_rate": 0.0003, "loss": 46.6,
    }  # fmt: skip
    assert not settings_printed_in([f"| {key:24}| {value:<14}|" for key, value in rows.items()])


def test_settings_in_the_log_stand_before_those_of_files(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("config: lr=1.0 batch=64 epochs=8 optimizer=Adam\n" + LINES)
    (tmp_path / "config.json").write_text(json.dumps({**SETTINGS, "weight_decay": 0.1}))
    run = read_run(tmp_path)
    assert [run.setting(name) for name in ("learning_rate", "num_train_epochs", "weight_decay")] == [1.0, 8, 0.1]
    assert "configuration read from config.json (a usual name in the folder of the run)" in run.notes
    assert any("learning_rate is 1.0 in the log and 0.003 in config.json" in note for note in run.notes)


PROGRAM = "import torch\nepochs = 3\nbatch_size = 16\noptimizer = 'sgd'\nlr = 9.0\nprint(torch)\n"


def test_the_source_of_another_program_is_no_configuration(tmp_path: Path) -> None:
    (tmp_path / "mlp.log").write_text(LINES)
    (tmp_path / "hf.py").write_text(PROGRAM)
    assert not read_run(tmp_path / "mlp.log").config
    assert not read_run(tmp_path).config


@pytest.mark.parametrize(
    ("log", "source", "line", "tie"),
    [
        ("mlp.log", "train_mlp.py", "", "it has the name of the log"),
        ("mlp.log", "hf.py", "$ python hf.py --seed 1\n", "the log names it"),
    ],
)
def test_source_is_a_configuration_where_the_log_or_its_name_ties_it(
    log: str, source: str, line: str, tie: str, tmp_path: Path
) -> None:
    (tmp_path / log).write_text(line + LINES)
    (tmp_path / source).write_text(PROGRAM)
    run = read_run(tmp_path / log)
    assert run.setting("learning_rate") == 9.0
    assert f"configuration read from {source} ({tie})" in run.notes


def test_a_configuration_in_a_folder_of_several_runs_is_of_the_one_that_it_names(tmp_path: Path) -> None:
    for name, factor in (("mlp", 1), ("bert", 2)):
        (tmp_path / f"{name}.log").write_text(
            "".join(f"Epoch {at}: loss {factor * (2 - at / 10)}\n" for at in range(9))
        )
    (tmp_path / "config.json").write_text(json.dumps(SETTINGS))
    for path in (tmp_path / "mlp.log", tmp_path):
        assert not read_run(path).config
    (tmp_path / "config_bert.json").write_text(json.dumps(SETTINGS))
    assert read_run(tmp_path, run="bert.log").setting("learning_rate") == 0.003
    assert read_run(tmp_path / "bert.log").setting("learning_rate") == 0.003
    assert not read_run(tmp_path / "mlp.log").config
