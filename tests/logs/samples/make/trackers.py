"""Make the samples of trackers' files by running the trackers themselves.

TensorBoard 2.21, wandb 0.31, mlflow 3.17 and trackio 0.43 were used.

Each tracker logs the run of `records`. Databases are stripped of tables that hold no metrics, to keep them small.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent.parent
STEPS = range(0, 120, 10)


def records() -> Iterator[tuple[int, dict[str, float]]]:
    """Yield step and values: a loss, a gradient norm that is NaN once, and an evaluation every fourth time."""
    for index, step in enumerate(STEPS):
        values = {"train/loss": 3 / (index + 1), "grad_norm": float("nan") if index == 7 else 1 + index / 8}
        yield step, values | ({"eval/loss": 3.5 / (index + 1)} if index % 4 == 3 else {})


def tensorboard(folder: Path) -> None:
    """Write both encodings: simple values as PyTorch does, tensors as TensorFlow 2 does."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.scalar.summary_v2 import scalar_pb
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    for name in ("simple", "tensor"):
        writer = EventFileWriter(str(folder), filename_suffix=f".{name}")
        for step, values in records():
            for tag, value in values.items():
                simple = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
                summary = simple if name == "simple" else scalar_pb(tag, value)
                writer.add_event(Event(wall_time=1e9 + step, step=step, summary=summary))
        writer.close()
        (found,) = folder.glob(f"*.{name}")
        found.rename(HERE / f"events.out.tfevents.{name}")


def wandb(folder: Path) -> None:
    """Log a run offline."""
    os.environ |= {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_CONSOLE": "off", "WANDB_DIR": str(folder)}
    import wandb

    quiet = wandb.Settings(x_disable_stats=True, x_disable_meta=True, x_disable_machine_info=True)
    config = {"learning_rate": 0.001, "optimizer": {"name": "adamw", "betas": [0.9, 0.95]}}
    run = wandb.init(project="sample", config=config, settings=quiet)
    for step, values in records():
        run.log({**values, "nested": {"a": step}, "note": "text"}, step=step)
    run.finish()
    wandb.teardown()
    (found,) = folder.glob("wandb/offline-run-*/*.wandb")
    shutil.copy(found, HERE / "run.wandb")


def mlflow(folder: Path) -> None:
    """Log two runs to a file store and to a database."""
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    import mlflow

    for uri in (f"file://{folder}/mlruns", f"sqlite:///{folder}/mlflow.db"):
        mlflow.set_tracking_uri(uri)
        mlflow.set_experiment("sample")
        with mlflow.start_run(run_name="one"):
            mlflow.log_params({"learning_rate": 0.001, "batch_size": 8})
            for step, values in records():
                mlflow.log_metrics(values, step=step)
            mlflow.log_metric("unbounded", float("inf"), step=0)
            mlflow.log_metric("unbounded", -float("inf"), step=10)
        with mlflow.start_run(run_name="two"):
            for value in (1.0, 2.0, 3.0):
                mlflow.log_metric("loss", value)
    _strip(folder / "mlflow.db", HERE / "mlflow.db", {"metrics", "params", "runs"})
    shutil.rmtree(HERE / "mlruns", ignore_errors=True)
    for kind in ("metrics", "params", "tags"):
        for file in (folder / "mlruns").glob(f"*/*/{kind}/**/*"):
            if file.is_file() and not file.name.startswith(("mlflow.source", "mlflow.user")):
                run = file.relative_to(folder / "mlruns")
                copy = HERE / "mlruns" / "1" / Path(*run.parts[1:])
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, copy)
                (HERE / "mlruns" / "1" / run.parts[1] / "meta.yaml").write_text("lifecycle_stage: active\n")


def trackio(folder: Path) -> None:
    """Log a run to a project's database."""
    os.environ |= {"TRACKIO_DIR": str(folder), "HF_HUB_OFFLINE": "1"}
    import trackio

    trackio.init(project="sample", name="one", config={"learning_rate": 0.001}, embed=False)
    for step, values in records():
        trackio.log(values, step=step)
    trackio.finish()
    _strip(folder / "sample.db", HERE / "trackio.db", {"metrics", "configs"})


def _strip(database: Path, copy: Path, tables: set[str]) -> None:
    shutil.copy(database, copy)
    connection = sqlite3.connect(copy)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA foreign_keys = OFF")
    for kind, name in connection.execute("SELECT type, name FROM sqlite_master").fetchall():
        if kind == "index" and not name.startswith("sqlite_"):
            connection.execute(f"DROP INDEX IF EXISTS {name}")
        elif kind == "table" and name not in tables and not name.startswith("sqlite_"):
            connection.execute(f"DROP TABLE {name}")
        elif kind == "trigger":
            connection.execute(f"DROP TRIGGER IF EXISTS {name}")
    if "runs" in tables:
        connection.execute("UPDATE runs SET artifact_uri = '', user_id = '', source_name = ''")
    connection.commit()
    connection.execute("PRAGMA page_size = 512")
    connection.execute("VACUUM")
    connection.close()


if __name__ == "__main__":
    for make in (tensorboard, wandb, mlflow, trackio):
        with tempfile.TemporaryDirectory() as place:
            make(Path(place))
