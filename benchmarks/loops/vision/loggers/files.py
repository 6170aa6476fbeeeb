"""Logs that are tables or JSON."""

import csv
import json
from pathlib import Path

import yaml

from benchmarks.loops.vision.config import Config
from benchmarks.loops.vision.loggers.base import PLACES, Logger, Row


class CsvSteps(Logger):
    """`train.csv` with a row a step and `val.csv` with a row an epoch."""

    def _append(self, name: str, row: Row) -> None:
        path = self.folder / name
        new = not path.exists()
        with path.open("a", newline="") as out:
            writer = csv.DictWriter(out, list(row))
            if new:
                writer.writeheader()
            writer.writerow({k: f"{v:.6g}" for k, v in row.items()})

    def step(self, row: Row) -> None:
        """Step and epoch, then the values."""
        self._append("train.csv", {"step": row["step"], "epoch": row["epoch"]} | self.picked(row))

    def epoch(self, row: Row) -> None:
        """Everything measured at the epoch's end."""
        self._append("val.csv", {k: v for k, v in row.items() if k not in ("train_loss", "lr", "epoch_time")})


class CsvEpochs(CsvSteps):
    """`log.csv` with a row an epoch and no more."""

    def step(self, row: Row) -> None:
        """Nothing: epochs alone are told."""

    def epoch(self, row: Row) -> None:
        """The row without the step."""
        self._append("log.csv", {k: v for k, v in row.items() if k != "step"})


class JsonLines(Logger):
    """One JSON object a line, steps and epochs in one file."""

    def _append(self, row: dict[str, object]) -> None:
        with (self.folder / "log.jsonl").open("a") as out:
            out.write(json.dumps(row) + "\n")

    def step(self, row: Row) -> None:
        """Marked as train."""
        self._append({"mode": "train", "epoch": row["epoch"], "iter": row["step"], **self.picked(row)})

    def epoch(self, row: Row) -> None:
        """Marked as val."""
        self._append({"mode": "val", "iter": row["step"], **{k: v for k, v in row.items() if k != "step"}})


class History(Logger):
    """`history.json`: a list of values for each measure of the epochs, rewritten after each."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.values: dict[str, list[float]] = {}

    def epoch(self, row: Row) -> None:
        """Adds to each list."""
        for name, value in row.items():
            if name not in ("step", "epoch_time"):
                self.values.setdefault(name, []).append(value)
        (self.folder / "history.json").write_text(json.dumps(self.values, indent=1))


class LightningCsv(Logger):
    """Lightning's `metrics.csv`: one table with empty cells, settings as `hparams.yaml`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.version = folder / "lightning_logs" / "version_0"
        self.version.mkdir(parents=True)
        self.rows: list[dict[str, float]] = []

    def settings(self, config: Config, form: str) -> None:
        """Whatever the form, in Lightning's place."""
        if form:
            (self.version / "hparams.yaml").write_text(yaml.safe_dump(config.flat()))

    def step(self, row: Row) -> None:
        """Train columns alone."""
        values = {("train_loss_step" if k == "loss" else k): v for k, v in self.picked(row).items()}
        self.rows.append({"epoch": row["epoch"], "step": row["step"] - 1} | values)

    def epoch(self, row: Row) -> None:
        """Validation columns, then the epoch's mean of the loss in a row of its own."""
        place = {"epoch": row["epoch"], "step": row["step"] - 1}
        self.rows.append(place | {k: v for k, v in row.items() if k not in (*PLACES, "train_loss", "lr", "epoch_time")})
        self.rows.append(place | {"train_loss_epoch": row["train_loss"]})

    def close(self) -> None:
        """Writes the table: its columns are known at the end."""
        names = sorted({name for row in self.rows for name in row})
        with (self.version / "metrics.csv").open("w", newline="") as out:
            writer = csv.DictWriter(out, names, restval="")
            writer.writeheader()
            writer.writerows(self.rows)
