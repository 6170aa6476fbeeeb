"""A framework that writes one run to several places of a folder: the run is one, and two versions of it are two."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from torch.utils import tensorboard

from mldebug_mcp import diagnose_runs
from mldebug_mcp.logs import read_run

EVERY, STEPS = 10, 100


def loss_at(step: int, factor: float) -> float:
    """Return the loss at a step."""
    return factor * (1 + 2 / (1 + step / 30))


def lightning(folder: Path, version: int, factor: float, *, logs: str = "lightning_logs", events: bool = True) -> None:
    """Write what Lightning's loggers write, its `CSVLogger` and its `TensorBoardLogger`."""
    place = folder / logs / f"version_{version}"
    place.mkdir(parents=True)
    rows = [f"{step // 50},{step},{loss_at(step, factor)}" for step in range(EVERY - 1, STEPS, EVERY)]
    (place / "metrics.csv").write_text("\n".join(["epoch,step,train_loss", *rows, ""]), encoding="utf-8")
    (place / "hparams.yaml").write_text(f"lr: {0.1 * factor}\n", encoding="utf-8")
    if events:
        with tensorboard.SummaryWriter(str(place)) as writer:
            for step in range(EVERY - 1, STEPS, EVERY):
                writer.add_scalar("train_loss", loss_at(step, factor), step)


def lightning_console(version: int, factor: float) -> str:
    """Return what Lightning draws, with its losses rounded."""
    return "".join(
        f"Epoch {epoch}: 100%|████| 50/50 [00:01<00:00, 50.00it/s, v_num={version}, "
        f"train_loss={loss_at(50 * epoch + 49, factor):.2g}]\n"
        for epoch in range(2)
    )


def names(folder: Path) -> set[str]:
    """Return the runs of a folder by name."""
    return {row.name for row in diagnose_runs(folder).rows}


@pytest.mark.parametrize("logs", ["lightning_logs", "my_model"])
@pytest.mark.parametrize("events", [True, False])
@pytest.mark.parametrize("console", ["train.log", "slurm-17.out"])
def test_what_lightning_printed_is_of_the_run_whose_version_it_names(
    tmp_path: Path, logs: str, console: str, events: bool
) -> None:
    lightning(tmp_path / "exp", 0, 1.0, logs=logs, events=events)
    (tmp_path / "exp" / console).write_text(lightning_console(0, 1.0), encoding="utf-8")
    assert names(tmp_path / "exp") == {f"{logs}/version_0"}
    assert names(tmp_path) == {f"exp/{logs}/version_0"}
    run = read_run(tmp_path / "exp")
    assert run["loss"].value.tolist() == pytest.approx([loss_at(step, 1.0) for step in range(EVERY - 1, STEPS, EVERY)])
    assert run.config["learning_rate"] == 0.1


def test_two_versions_are_two_runs_each_with_what_it_printed(tmp_path: Path) -> None:
    for version, factor in ((0, 1.0), (1, 1.5)):
        lightning(tmp_path, version, factor)
        (tmp_path / f"out_{version}.log").write_text(lightning_console(version, factor), encoding="utf-8")
    assert names(tmp_path) == {"lightning_logs/version_0", "lightning_logs/version_1"}


def test_a_log_of_something_else_above_a_version_is_a_run_of_its_own(tmp_path: Path) -> None:
    lightning(tmp_path, 0, 1.0, events=False)
    lines = [f"step {step}: loss={7.3 * math.exp(-step / 13) + 0.011 * step:.4f}" for step in range(40)]
    (tmp_path / "mlp.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert names(tmp_path) == {".", "lightning_logs/version_0"}


def test_what_lightning_printed_without_a_bar_is_of_the_only_version(tmp_path: Path) -> None:
    lightning(tmp_path, 0, 1.0)
    lines = [f"Epoch {epoch}: train_loss={loss_at(50 * epoch + 49, 1.0):.3f}" for epoch in range(2)]
    said = ["GPU available: False, used: False", *lines, "`Trainer.fit` stopped: `max_epochs=2` reached.", ""]
    (tmp_path / "stdout.txt").write_text("\n".join(said), encoding="utf-8")
    assert names(tmp_path) == {"lightning_logs/version_0"}


def trainer(folder: Path, factor: float) -> None:
    """Write what Hugging Face's Trainer writes: states in checkpoints, event files below `runs`, and its output."""
    history = [
        {"loss": round(loss_at(step, factor), 4), "learning_rate": 1e-4, "epoch": step / 50, "step": step}
        for step in range(EVERY, STEPS + 1, EVERY)
    ]
    for step in (50, 100):
        checkpoint = folder / f"checkpoint-{step}"
        checkpoint.mkdir(parents=True)
        state = {
            "global_step": step,
            "max_steps": STEPS,
            "log_history": [one for one in history if one["step"] <= step],
        }
        (checkpoint / "trainer_state.json").write_text(json.dumps(state), encoding="utf-8")
    with tensorboard.SummaryWriter(str(folder / "runs" / "Nov28_12-00-00_host")) as writer:
        for one in history:
            writer.add_scalar("train/loss", one["loss"], int(one["step"]))


@pytest.mark.parametrize("console", ["out/train.log", "train.log", ""])
def test_states_events_and_output_of_the_trainer_are_one_run(tmp_path: Path, console: str) -> None:
    trainer(tmp_path / "out", 1.0)
    if console:
        lines = [
            f"{{'loss': {round(loss_at(step, 1.0), 4)}, 'epoch': {step / 50}}}" for step in range(EVERY, 101, EVERY)
        ]
        (tmp_path / console).write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert names(tmp_path) == {"."}
    assert read_run(tmp_path)["loss"].step.tolist() == list(range(EVERY, STEPS + 1, EVERY))


def test_two_outputs_of_the_trainer_are_two_runs(tmp_path: Path) -> None:
    for name, factor in (("a", 1.0), ("b", 1.5)):
        trainer(tmp_path / name, factor)
    assert names(tmp_path) == {"a", "b"}


@pytest.mark.parametrize("console", ["train.log", "stdout.log", "slurm-17.out"])
def test_the_table_and_the_output_of_keras_are_one_run(tmp_path: Path, console: str) -> None:
    losses = [loss_at(50 * epoch, 1.0) for epoch in range(8)]
    rows = [f"{epoch},{loss},{1.1 * loss}" for epoch, loss in enumerate(losses)]
    (tmp_path / "training.csv").write_text("\n".join(["epoch,loss,val_loss", *rows, ""]), encoding="utf-8")
    printed = "".join(
        f"Epoch {epoch}/8\n100/100 - 1s - loss: {loss:.4f} - val_loss: {1.1 * loss:.4f}\n"
        for epoch, loss in enumerate(losses, start=1)
    )
    (tmp_path / console).write_text(printed, encoding="utf-8")
    assert names(tmp_path) == {"."}
