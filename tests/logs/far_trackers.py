"""Log a healthy run and one that diverges with a tracker, and keep what it writes as a sample.

Run `python tests/logs/far_trackers.py TRACKER FOLDER` with the tracker's package installed, at the
version that `docs/reading.md` names. It writes `FOLDER/TRACKER/healthy` and `diverged`. Nothing of this package is
imported, so that a tracker may pin what it likes. Samples of `tests/logs/samples/far` whose values no tracker was
given are what a framework prints of its own run; `tests/logs/far.md` says how each came about.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

STEPS = 20
EVALUATED_EVERY = 5
HEALTHY = [2.3 * 0.9**step + 0.1 for step in range(STEPS)]
DIVERGED = [2.3, 9.0, 480.0, 5e6, 3e19, math.inf, math.inf] + [math.nan] * 13
RUNS = {"healthy": (HEALTHY, 0.001), "diverged": (DIVERGED, 1.0)}
"""What each run logs: its training loss by step, and its learning rate."""


def rows(kind: str) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield each step with what is logged at it."""
    losses, rate = RUNS[kind]
    for step, loss in enumerate(losses):
        row = {"train/loss": loss, "train/lr": rate}
        yield step, row | ({"val/loss": loss + 0.1} if step % EVALUATED_EVERY == EVALUATED_EVERY - 1 else {})


def both_losses(kind: str) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield each step with the losses of training and validation."""
    for step, loss in enumerate(RUNS[kind][0]):
        yield step, {"loss": loss, "val_loss": loss + 0.1}


def settings(kind: str) -> dict[str, float]:
    """Return the settings that are logged."""
    return {"lr": RUNS[kind][1], "batch_size": 32}


def keep(source: Path, names: Sequence[str], folder: Path) -> None:
    """Copy what the patterns name below a folder into another, at the same places."""
    for name in names:
        for path in source.glob(name):
            into = folder / path.relative_to(source)
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, into)


def dvclive(kind: str, folder: Path) -> None:
    """Write the folder of DVCLive."""
    from dvclive import Live

    with Live(str(folder), save_dvc_exp=False, report=None) as live:
        live.log_params(settings(kind))
        for _, row in rows(kind):
            for name, value in row.items():
                live.log_metric(name, value)
            live.next_step()


def swanlab(kind: str, folder: Path) -> None:
    """Write SwanLab's binary log and its configuration."""
    import swanlab

    with tempfile.TemporaryDirectory() as place:
        swanlab.init(project="p", experiment_name=kind, config=settings(kind), mode="offline", logdir=place)
        for step, row in rows(kind):
            swanlab.log(row, step=step)
        swanlab.finish()
        (run,) = Path(place).glob("run-*")
        keep(run, ["*.swanlab", "files/config.yaml"], folder)
    next(folder.glob("*.swanlab")).rename(folder / "run.swanlab")


def clearml(kind: str, folder: Path) -> None:
    """Write ClearML's offline metrics and the parameters of the task."""
    from clearml import Task

    Task.set_offline(True)
    task = Task.init("p", kind, auto_connect_frameworks=False, auto_resource_monitoring=False)
    task.connect(settings(kind))
    for step, row in rows(kind):
        for name, value in row.items():
            task.get_logger().report_scalar(*name.split("/"), value, step)
    task.get_logger().report_single_value("best", 0.5)
    place = Path(task.get_offline_mode_folder())
    task.close()
    keep(place, ["metrics.jsonl"], folder)
    described = json.loads((place / "task.json").read_text())
    kept = {key: described[key] for key in ("name", "project_name", "type", "hyperparams")}
    (folder / "task.json").write_text(json.dumps(kept))


def comet(kind: str, folder: Path) -> None:
    """Write the messages of Comet's offline archive."""
    import comet_ml

    with tempfile.TemporaryDirectory() as place:
        experiment = comet_ml.OfflineExperiment(offline_directory=place, project_name="p", log_code=False)
        experiment.log_parameters(settings(kind))
        for step, row in rows(kind):
            for name, value in row.items():
                experiment.log_metric(name, value, step=step)
        experiment.end()
        (archive,) = Path(place).glob("*.zip")
        with zipfile.ZipFile(archive) as whole:
            lines = whole.read("messages.json").decode().splitlines()
    kept = [line for line in lines if json.loads(line)["type"] in ("metric_msg", "parameter_msg")]
    (folder / "messages.json").write_text("".join(f"{line}\n" for line in kept if "run_arg" not in line))


def neptune(kind: str, folder: Path) -> None:
    """Write the offline database of neptune-scale, which refuses numbers that are not finite."""
    from neptune_scale import Run

    with tempfile.TemporaryDirectory() as place:
        run = Run(project="a/b", api_token="", mode="offline", experiment_name=kind, log_directory=place)
        run.log_configs(settings(kind))
        for step, row in rows(kind):
            run.log_metrics({name: value for name, value in row.items() if math.isfinite(value)}, step=step)
        run.close()
        shutil.copy(next(Path(place).rglob("*.sqlite3")), folder)


def tensorboard(kind: str, folder: Path) -> None:
    """Write event files, some in the sub-folders of `add_scalars`."""
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder))
    for step, row in rows(kind):
        writer.add_scalar("train/loss", row["train/loss"], step)
        writer.add_scalar("train/lr", row["train/lr"], step)
        writer.add_scalars("acc", {"train": 0.1 + step * 0.04, "val": 0.1 + step * 0.03}, step)
    writer.close()


def tensorboardx(kind: str, folder: Path) -> None:
    """Write tensorboardX's event files, and the scalars that it exports: those of `add_scalars` alone."""
    from tensorboardX import SummaryWriter

    with contextlib.chdir(folder):
        writer = SummaryWriter("run")  # its path stands in the exported names
        for step, row in both_losses(kind):
            writer.add_scalar("train/loss", row["loss"], step)
            writer.add_scalars("losses", {"train": row["loss"], "val": row["val_loss"]}, step)
        writer.export_scalars_to_json("all_scalars.json")
        writer.close()


def visualdl(kind: str, folder: Path) -> None:
    """Write VisualDL's binary log."""
    from visualdl import LogWriter

    with LogWriter(logdir=str(folder)) as writer:
        for step, row in rows(kind):
            for name in ("train/loss", "train/lr"):
                writer.add_scalar(tag=name, step=step, value=row[name])


def polyaxon(kind: str, folder: Path) -> None:
    """Write Polyaxon's offline events: a file for each metric."""
    os.environ |= {"POLYAXON_OFFLINE_ROOT": str(folder), "POLYAXON_HOME": str(folder)}
    from polyaxon import tracking

    tracking.init(is_offline=True, artifacts_path=str(folder), track_env=False, track_code=False, track_logs=False)
    tracking.log_inputs(**settings(kind))
    for step, row in both_losses(kind):
        tracking.log_metrics(step=step, **row)
    tracking.end()


def dagshub(kind: str, folder: Path) -> None:
    """Write the long table of DagsHub's logger and its file of parameters."""
    from dagshub import dagshub_logger

    with dagshub_logger(str(folder / "metrics.csv"), hparams_path=str(folder / "params.yml")) as logger:
        logger.log_hyperparams(**settings(kind), optimizer="adam")
        for step, row in both_losses(kind):
            logger.log_metrics(row, step_num=step)


def guild(kind: str, folder: Path) -> None:
    """Write a run of Guild: what the script printed, its flags, and the events that Guild made of it."""
    losses, rate = RUNS[kind]
    printed = "\n".join(f"step: {step}\nloss: {loss}" for step, loss in enumerate(losses))
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as home:
        (Path(place) / "train.py").write_text(f"lr = 0.001\nbatch_size = 32\nprint({printed!r})\n")
        command = [sys.executable, "-m", "guild.main_bootstrap", "run", "train.py", f"lr={rate}", "-y"]
        subprocess.run(command, cwd=place, env={**os.environ, "GUILD_HOME": home}, check=True)
        (run,) = (Path(home) / "runs").iterdir()
        keep(run, [".guild/output", ".guild/attrs/flags", ".guild/events.out.tfevents*"], folder)


def torchrl(kind: str, folder: Path) -> None:
    """Write the tables of TorchRL's CSVLogger, one for each scalar."""
    from torchrl.record.loggers.csv import CSVLogger

    with tempfile.TemporaryDirectory() as place:
        logger = CSVLogger("run", log_dir=place)
        logger.log_hparams(settings(kind))
        for step, row in both_losses(kind):
            logger.log_scalar("train/loss", row["loss"], step=10 * step)
            logger.log_scalar("eval/reward", float(step), step=10 * step)
        shutil.copytree(Path(place) / "run", folder, dirs_exist_ok=True)


def record_keeper(kind: str, folder: Path) -> None:
    """Write record-keeper's tables, of PyTorch Metric Learning."""
    from record_keeper import RecordKeeper, RecordWriter

    keeper = RecordKeeper(record_writer=RecordWriter(str(folder)))
    for step, row in both_losses(kind):
        keeper.update_records(row, step, parent_name="training")
    keeper.save_records()


def mlx_lm(kind: str, folder: Path) -> None:
    """Write mlx-lm's table of training, drawn by its own class; the sample is its log alone."""
    from mlx_lm.cli_ui import TrainUI

    with (folder / "train.log").open("w") as file, contextlib.redirect_stdout(file), TrainUI(STEPS) as table:
        for step, row in both_losses(kind):
            table.advance()
            if step % 10 == 9:
                table.report_val(step + 1, row["val_loss"], 0.3)
            table.report_train(step + 1, row["loss"], 1201.0 + step, 100.0 * (step + 1))


TRACKERS: dict[str, Callable[[str, Path], None]] = {
    writer.__name__: writer
    for writer in (
        dvclive, swanlab, clearml, comet, neptune, tensorboard, tensorboardx, visualdl, polyaxon, dagshub, guild,
        torchrl, record_keeper, mlx_lm,
    )
}  # fmt: skip


if __name__ == "__main__":
    tracker, into = sys.argv[1], Path(sys.argv[2]).resolve()
    for each in RUNS:
        empty = into / tracker / each
        shutil.rmtree(empty, ignore_errors=True)
        empty.mkdir(parents=True)
        TRACKERS[tracker](each, empty)
