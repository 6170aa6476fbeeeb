"""Settings above a log in forms of one's own, in a document of results, and in Python source beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mldebug_mcp.logs import read_run

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
