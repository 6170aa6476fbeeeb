"""Log a healthy run and one that diverges with a tracker, and keep what it writes as a sample.

Run with the package installed: `python benchmarks/samples/trackers.py TRACKER FOLDER`. The packages and versions of the
samples: dvclive 3.49.1, swanlab 0.10.3, clearml 2.1.12, comet_ml 3.58.8, neptune-scale 0.30.0, catboost 1.2.10;
TensorBoard's `add_scalars` is torch's. Lines that describe the machine are left out of the samples; all else is as it
was written.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

STEPS = 20
EVALUATED_EVERY = 5
HEALTHY = [2.3 * 0.9**step + 0.1 for step in range(STEPS)]
DIVERGED = [2.3, 9.0, 480.0, 5e6, 3e19, math.inf, math.inf] + [math.nan] * 13
RUNS = {"healthy": (HEALTHY, 0.001), "diverged": (DIVERGED, 1.0)}
"""What each run logs: its training loss by step, and its learning rate."""


def rows(losses: list[float], rate: float) -> Iterator[dict[str, float]]:
    """Yield what is logged at each step."""
    for step, loss in enumerate(losses):
        row = {"train/loss": loss, "train/lr": rate}
        yield row | ({"val/loss": loss + 0.1} if step % EVALUATED_EVERY == EVALUATED_EVERY - 1 else {})


def dvclive(kind: str, folder: Path) -> None:
    """Write the folder of DVCLive."""
    from dvclive import Live

    losses, rate = RUNS[kind]
    with Live(str(folder / kind), save_dvc_exp=False, report=None) as live:
        live.log_params({"lr": rate, "batch_size": 32})
        for row in rows(losses, rate):
            for name, value in row.items():
                live.log_metric(name, value)
            live.next_step()
    (folder / "dvc.yaml").unlink(missing_ok=True)


def swanlab(kind: str, folder: Path) -> None:
    """Write SwanLab's binary log and its configuration."""
    import swanlab

    losses, rate = RUNS[kind]
    with tempfile.TemporaryDirectory() as place:
        config = {"lr": rate, "batch_size": 32}
        swanlab.init(project="p", experiment_name=kind, config=config, mode="offline", logdir=place)
        for step, row in enumerate(rows(losses, rate)):
            swanlab.log(row, step=step)
        swanlab.finish()
        (run,) = Path(place).glob("run-*")
        (folder / kind / "files").mkdir(parents=True)
        shutil.copy(next(run.glob("*.swanlab")), folder / kind / "run.swanlab")
        shutil.copy(run / "files" / "config.yaml", folder / kind / "files")


def clearml(kind: str, folder: Path) -> None:
    """Write ClearML's offline metrics and the parameters of the task."""
    from clearml import Task

    losses, rate = RUNS[kind]
    Task.set_offline(True)
    task = Task.init("p", kind, auto_connect_frameworks=False, auto_resource_monitoring=False)
    task.connect({"lr": rate, "batch_size": 32})
    for step, row in enumerate(rows(losses, rate)):
        for name, value in row.items():
            task.get_logger().report_scalar(*name.split("/"), value, step)
    task.get_logger().report_single_value("best", 0.5)
    place = Path(task.get_offline_mode_folder())
    task.close()
    (folder / kind).mkdir(parents=True)
    shutil.copy(place / "metrics.jsonl", folder / kind)
    described = json.loads((place / "task.json").read_text())
    kept = {key: described[key] for key in ("name", "project_name", "type", "hyperparams")}
    (folder / kind / "task.json").write_text(json.dumps(kept))


def comet(kind: str, folder: Path) -> None:
    """Write Comet's offline archive."""
    import comet_ml

    losses, rate = RUNS[kind]
    with tempfile.TemporaryDirectory() as place:
        experiment = comet_ml.OfflineExperiment(offline_directory=place, project_name="p", log_code=False)
        experiment.log_parameters({"lr": rate, "batch_size": 32})
        for step, row in enumerate(rows(losses, rate)):
            for name, value in row.items():
                experiment.log_metric(name, value, step=step)
        experiment.end()
        (archive,) = Path(place).glob("*.zip")
        with zipfile.ZipFile(archive) as whole:
            lines = whole.read("messages.json").decode().splitlines()
    kept = [line for line in lines if json.loads(line)["type"] in ("metric_msg", "parameter_msg")]
    (folder / kind).mkdir(parents=True)
    own = [line for line in kept if "run_arg" not in line]
    (folder / kind / "messages.json").write_text("\n".join(own) + "\n")


def neptune(kind: str, folder: Path) -> None:
    """Write the offline database of neptune-scale, which refuses numbers that are not finite."""
    from neptune_scale import Run

    losses, rate = RUNS[kind]
    with tempfile.TemporaryDirectory() as place:
        run = Run(project="a/b", api_token="", mode="offline", experiment_name=kind, log_directory=place)
        run.log_configs({"lr": rate, "batch_size": 32})
        for step, row in enumerate(rows(losses, rate)):
            run.log_metrics({name: value for name, value in row.items() if math.isfinite(value)}, step=step)
        run.close()
        (folder / kind).mkdir(parents=True)
        shutil.copy(next(Path(place).rglob("*.sqlite3")), folder / kind)


def tensorboard(kind: str, folder: Path) -> None:
    """Write event files, some in the sub-folders of `add_scalars`."""
    from torch.utils.tensorboard import SummaryWriter

    losses, rate = RUNS[kind]
    writer = SummaryWriter(str(folder / kind))
    for step, row in enumerate(rows(losses, rate)):
        writer.add_scalar("train/loss", row["train/loss"], step)
        writer.add_scalar("train/lr", rate, step)
        writer.add_scalars("acc", {"train": 0.1 + step * 0.04, "val": 0.1 + step * 0.03}, step)
    writer.close()


def catboost(kind: str, folder: Path) -> None:
    """Write the folder of CatBoost's training with two sets of evaluation."""
    import numpy as np
    from catboost import CatBoostClassifier

    random = np.random.default_rng(0)
    x = random.normal(size=(200, 4))
    y = (x[:, 0] + 0.5 * random.normal(size=200) > 0).astype(int)
    rate = {"healthy": 0.1, "diverged": 100.0}[kind]
    model = CatBoostClassifier(
        iterations=15, learning_rate=rate, depth=3, train_dir=str(folder / kind), verbose=False, thread_count=1,
        eval_metric="AUC", custom_metric=["Logloss"], use_best_model=False,
    )  # fmt: skip
    model.fit(x[:120], y[:120], eval_set=[(x[120:160], y[120:160]), (x[160:], y[160:])])


TRACKERS: dict[str, Callable[[str, Path], None]] = {
    one.__name__: one for one in (dvclive, swanlab, clearml, comet, neptune, tensorboard, catboost)
}


if __name__ == "__main__":
    tracker, into = sys.argv[1], Path(sys.argv[2]).resolve()
    into.mkdir(parents=True, exist_ok=True)
    for each in RUNS:
        TRACKERS[tracker](each, into)
