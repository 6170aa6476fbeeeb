"""Logs of experiment trackers: TensorBoard by its own writer, MLflow's file store, an exported W&B history."""

import json
import time
from pathlib import Path

import yaml

from benchmarks.loops.vision.config import Config
from benchmarks.loops.vision.loggers.base import Logger, Row


class TensorBoard(Logger):
    """Scalars under train/ and val/ in an event file."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(folder / "tb"))

    def step(self, row: Row) -> None:
        """Scalars at this step."""
        for name, value in self.picked(row).items():
            self.writer.add_scalar(f"train/{name}", value, int(row["step"]))

    def epoch(self, row: Row) -> None:
        """Evaluations at this step."""
        for name, value in row.items():
            kind, _, measure = name.partition("_")
            if kind in ("val", "test"):
                self.writer.add_scalar(f"{kind}/{measure}", value, int(row["step"]))

    def close(self) -> None:
        """Flushes and closes the event file."""
        self.writer.close()


class MLflow(Logger):
    """One file a metric with time, value and step; one file a parameter."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.run = folder / "mlruns" / "0" / "5d0c1f7e9b3a4c2d8e6f"
        for part in ("metrics", "params"):
            (self.run / part).mkdir(parents=True)
        meta = {"run_id": self.run.name, "run_name": "calm-finch-12", "status": 3, "lifecycle_stage": "active"}
        (self.run / "meta.yaml").write_text(yaml.safe_dump(meta))

    def settings(self, config: Config, form: str) -> None:
        """Whatever the form, as parameters."""
        if form:
            for name, value in config.flat().items():
                (self.run / "params" / name).write_text(str(value))

    def _append(self, name: str, value: float, step: int) -> None:
        with (self.run / "metrics" / name).open("a") as out:
            out.write(f"{time.time_ns() // 1_000_000} {value} {step}\n")

    def step(self, row: Row) -> None:
        """Metrics by step."""
        for name, value in self.picked(row).items():
            self._append(f"train_{name}" if name == "loss" else name, value, int(row["step"]))

    def epoch(self, row: Row) -> None:
        """Evaluations at the same counter."""
        for name, value in row.items():
            if name.startswith(("val_", "test_")):
                self._append(name, value, int(row["step"]))


class Wandb(Logger):
    """A history of JSON lines with _step and _timestamp, `config.yaml` and a summary."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.last: dict[str, float] = {}
        self.began = time.time()

    def settings(self, config: Config, form: str) -> None:
        """Whatever the form, each value under `value`."""
        if form:
            values = {k: {"value": v} for k, v in config.flat().items()}
            (self.folder / "config.yaml").write_text(yaml.safe_dump(values))

    def _append(self, row: Row, step: float) -> None:
        now = time.time()
        line = row | {"_step": int(step), "_timestamp": round(now, 3), "_runtime": round(now - self.began, 3)}
        self.last |= line
        with (self.folder / "wandb-history.jsonl").open("a") as out:
            out.write(json.dumps(line) + "\n")

    def step(self, row: Row) -> None:
        """Under train/."""
        self._append({f"train/{k}": v for k, v in self.picked(row).items()} | {"epoch": row["epoch"]}, row["step"])

    def epoch(self, row: Row) -> None:
        """Under val/."""
        values = {k.replace("_", "/", 1): v for k, v in row.items() if k.startswith(("val_", "test_"))}
        self._append(values | {"epoch": row["epoch"]}, row["step"])

    def close(self) -> None:
        """The summary is each name's last value."""
        (self.folder / "wandb-summary.json").write_text(json.dumps(self.last))
