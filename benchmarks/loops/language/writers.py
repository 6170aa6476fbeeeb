"""How people write their logs: the common part, and tables for files that programs read."""

import csv
import json
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.loops.language import saved
from benchmarks.loops.language.settings import Settings

if TYPE_CHECKING:
    from benchmarks.loops.language.task import Record, Task


class Writer(ABC):
    """A log folder in one style. `args` names the way settings are saved, "" for not at all."""

    file = "train.log"
    evaluates_at_start = True

    def __init__(self, folder: Path, args: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.args = folder, args
        self.begun = time.perf_counter()
        self.history: list[Record] = []

    def line(self, text: str, end: str = "\n") -> None:
        """Add a line to the log file."""
        with (self.folder / self.file).open("a", encoding="utf-8") as file:
            file.write(text + end)

    def start(self, s: Settings, task: "Task") -> None:
        """Save the settings and what a console shows before training."""
        self.s, self.tokens = s, s.batch_size * s.accum * task.tokens_per_sample
        self.params = sum(p.numel() for p in task.model.parameters())
        if self.args:
            saved.save(self.folder, self.args, task.name, s.as_dict(), self.line)
        self.opening()

    def opening(self) -> None:  # noqa: B027 - most have none
        """Lines before the first step."""

    def trained(self, record: "Record") -> None:
        """One logged step."""
        self.history.append(record)
        self.step_line(record)

    def evaluated(self, step: int, metrics: "Record") -> None:
        """One evaluation."""
        self.history.append({"step": float(step)} | {f"eval_{name}": value for name, value in metrics.items()})
        self.eval_line(step, metrics)

    @abstractmethod
    def step_line(self, record: "Record") -> None:
        """Write a step."""

    @abstractmethod
    def eval_line(self, step: int, metrics: "Record") -> None:
        """Write an evaluation."""

    def resumed(self, step: int) -> None:
        """A new process goes on from a checkpoint."""
        self.line(f"Resuming from checkpoint out/ckpt_{step}.pt (step {step})")

    def close(self) -> None:  # noqa: B027 - most have none
        """Lines after the last step."""


def extras(record: "Record") -> "Record":
    """The metrics of the task alone."""
    usual = {"step", "loss", "lr", "grad_norm", "data_s", "step_s", "rss_mb", "epoch", "loss_scale", "skipped"}
    return {name: value for name, value in record.items() if name not in usual}


class Jsonl(Writer):
    """A metrics.jsonl with everything the loop knows."""

    file = "metrics.jsonl"

    def step_line(self, record: "Record") -> None:
        """A row of training metrics."""
        row: dict[str, float] = {"step": int(record["step"]), "train/loss": record["loss"], "train/lr": record["lr"]}
        row |= {f"train/{k}": v for k, v in extras(record).items()}
        row |= {"train/grad_norm": record["grad_norm"], "perf/step_time": round(record["step_s"], 5)}
        row |= {"perf/data_time": round(record["data_s"], 5), "perf/rss_mb": round(record["rss_mb"], 1)}
        for name in ("epoch", "loss_scale", "skipped"):
            if name in record:
                row[f"train/{name}"] = record[name]
        self.line(json.dumps(row))

    def eval_line(self, step: int, metrics: "Record") -> None:
        """A row of evaluation metrics."""
        self.line(json.dumps({"step": step} | {f"eval/{k}": v for k, v in metrics.items()}))

    def resumed(self, step: int) -> None:
        """A note as a row of its own."""
        self.line(json.dumps({"event": "resume", "step": step, "checkpoint": f"ckpt_{step}.pt"}))


class Csv(Writer):
    """A metrics.csv with one column per metric, empty where a row has none."""

    file = "metrics.csv"

    def step_line(self, record: "Record") -> None:
        """Rows are written at the end, when the columns are known."""

    def eval_line(self, step: int, metrics: "Record") -> None:
        """See step_line."""

    def resumed(self, step: int) -> None:
        """The table shows nothing of it; a note stands beside."""
        (self.folder / "notes.txt").write_text(f"restarted from step {step}\n", encoding="utf-8")

    def close(self) -> None:
        """Write the table."""
        names = [name for name in dict.fromkeys(k for row in self.history for k in row) if name != "rss_mb"]
        with (self.folder / self.file).open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, names, extrasaction="ignore")
            table.writeheader()
            table.writerows({k: f"{v:.6g}" for k, v in row.items()} for row in self.history)


class Board(Writer):
    """TensorBoard event files."""

    def opening(self) -> None:
        """Open the event file."""
        from torch.utils.tensorboard import SummaryWriter

        self.board = SummaryWriter(str(self.folder))

    def step_line(self, record: "Record") -> None:
        """Scalars of a step."""
        for name, value in record.items():
            if name not in {"step", "rss_mb", "data_s", "step_s"}:
                self.board.add_scalar(f"train/{name}", value, int(record["step"]))

    def eval_line(self, step: int, metrics: "Record") -> None:
        """Scalars of an evaluation."""
        for name, value in metrics.items():
            self.board.add_scalar(f"val/{name}", value, step)

    def resumed(self, step: int) -> None:
        """Event files say nothing of it."""

    def close(self) -> None:
        """Flush the file."""
        self.board.close()
