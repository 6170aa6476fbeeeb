"""Which runs there are, how each is logged, and what is known of it."""

from __future__ import annotations

import csv
import io
import json
import math
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from benchmarks.faults.faults import FAULTS, HEALTHY, Fault
from benchmarks.faults.loop import Record, Setup, train
from benchmarks.faults.tasks import TASKS

FORMATS = ("jsonl", "csv", "text", "trainer_state")
FIELDS = ("all", "all", "no_grad_norm", "loss_only")
CLOCK = ("step_time", "data_time", "memory")


@dataclass(frozen=True)
class Case:
    """A run: what is trained, what is wrong with it, and how it is logged."""

    task: str
    fault: str
    severity: float
    seed: int

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.task}-{self.fault}-{self.severity:g}-{self.seed}"

    @property
    def choice(self) -> int:
        """A number that depends on the name alone: how the run is logged is drawn from it."""
        return zlib.crc32(self.name.encode())

    @property
    def rules(self) -> Fault:
        """The fault."""
        return FAULTS.get(self.fault) or HEALTHY[self.fault]

    @property
    def tuning(self) -> bool:
        """Whether it belongs to the part that numbers are fitted on."""
        return TASKS[self.task].tuning


@dataclass(frozen=True)
class Label:
    """What is known of a run.

    Args:
        cause: The injected cause.
        also: Other causes that the same observables justify.
        onset: The step at which the fault begins, if it has one.
        steps: Steps of the run.
        shows: Whether the logged metrics differ from those of the same run without the fault.
        tuning: Whether the run belongs to the tuning part.
    """

    cause: str
    also: tuple[str, ...]
    onset: float | None
    steps: int
    shows: bool
    tuning: bool


def cases(*, subset: bool) -> Iterator[Case]:
    """Yield every run; the subset is one severity and one seed of each fault, on one task of each part."""
    for fault in FAULTS.values():
        parts = [[task for task in fault.tasks if TASKS[task].tuning is tuning] for tuning in (True, False)]
        tasks = [task for part in parts for task in (part[:1] if subset else part)]
        for task in tasks:
            for severity in fault.severities[-1:] if subset else fault.severities:
                yield Case(task, fault.id, severity, 1)
    for fault in HEALTHY.values():
        for task in fault.tasks[:2] if subset else fault.tasks:
            for severity in fault.severities[:1] if subset else fault.severities:
                for seed in (1,) if subset else (1, 2):
                    yield Case(task, fault.id, severity, seed)


def make(case: Case, folder: Path) -> str:
    """Train a run, write its log, its configuration and its label, and return its name."""
    torch.set_num_threads(1)  # runs are trained side by side, one in each process
    setup = Setup.usual(TASKS[case.task], case.seed)
    case.rules.apply(setup, case.severity)
    records = train(setup)
    shows = case.rules.cause == "healthy" or differs(records, twin(case, setup), case)
    label = Label(case.rules.cause, case.rules.also, setup.onset, setup.steps, shows, case.tuning)
    run = folder / case.name
    run.mkdir(parents=True, exist_ok=True)
    write_log(run, case, thinned(records, case))
    if case.choice // 7 % 10 < 7:
        (run / "config.json").write_text(json.dumps(configuration(setup), indent=1), encoding="utf-8")
    (folder / f"{case.name}.label.json").write_text(json.dumps(asdict(label)), encoding="utf-8")
    return case.name


def twin(case: Case, setup: Setup) -> list[Record]:
    """Train the same run without its fault."""
    usual = Setup.usual(TASKS[case.task], case.seed)
    usual.steps, usual.examples = setup.steps, 0
    return train(usual)


def differs(records: list[Record], usual: list[Record], case: Case) -> bool:
    """Say whether what is logged differs visibly from the same run without the fault."""
    shown = logged_fields(case)
    for name in shown:
        ours = np.array([record.get(name, math.nan) for record in records])
        theirs = np.array([record.get(name, math.nan) for record in usual])
        logged = np.isfinite(theirs)
        if not logged.any():
            if np.isfinite(ours).any():
                return True
            continue
        if not np.isfinite(ours[logged]).all():
            return True
        span = max(float(np.ptp(theirs[logged])), 1e-9)
        apart = np.abs(ours[logged] - theirs[logged]) / span
        if np.median(apart[-max(1, len(apart) // 5) :]) > 0.15 or apart.max() > 1.0:
            return True
    return any(name in CLOCK for record in records for name in record)


def logged_fields(case: Case) -> tuple[str, ...]:
    """Return the metrics that this run logs."""
    fields = FIELDS[case.choice // 4 % len(FIELDS)]
    everything = ("loss", "eval_loss", "eval_accuracy", "learning_rate", "grad_norm", "loss_scale", "epoch", *CLOCK)
    left_out = {"all": (), "no_grad_norm": ("grad_norm",), "loss_only": ("grad_norm", "learning_rate", "epoch")}[fields]
    return tuple(name for name in everything if name not in left_out)


def thinned(records: list[Record], case: Case) -> list[Record]:
    """Return the records as they are logged: every step, or the mean of some steps as the Trainer does."""
    every = (1, 1, 5, 10)[case.choice // 16 % 4]
    shown = {"step", *logged_fields(case)}
    if len(records) // every < 40:
        every = 1
    out = []
    for start in range(0, len(records), every):
        window = records[start : start + every]
        merged = {name: value for record in window for name, value in record.items() if name in shown}
        merged["loss"] = float(np.mean([record["loss"] for record in window]))
        out.append(merged)
    return out


def configuration(setup: Setup) -> dict[str, float | bool | str]:
    """Return what stands in the configuration file."""
    task = setup.task
    known = {"gpt": "vocab_size", "sft": "vocab_size"}.get(task.name, "num_classes")
    return {
        "learning_rate": setup.lr,
        "warmup_steps": int(setup.warmup * setup.steps),
        "max_steps": setup.steps,
        "max_grad_norm": setup.clip,
        "weight_decay": setup.weight_decay,
        "batch_size": setup.batch,
        **({known: task.classes} if task.classes else {}),
        **setup.config,
    }


def write_log(run: Path, case: Case, records: list[Record]) -> None:
    """Write the log in the format that the run's name draws."""
    kind = FORMATS[case.choice % len(FORMATS)]
    if kind == "jsonl":
        (run / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    elif kind == "csv":
        (run / "metrics.csv").write_text(as_csv(records), encoding="utf-8")
    elif kind == "text":
        (run / "train.log").write_text(as_text(records), encoding="utf-8")
    else:
        (run / "trainer_state.json").write_text(
            json.dumps({"log_history": list(as_history(records))}), encoding="utf-8"
        )


def as_csv(records: list[Record]) -> str:
    """Return a table in the names of Keras and Lightning."""
    names = {"loss": "train_loss", "eval_loss": "val_loss", "eval_accuracy": "val_acc", "learning_rate": "lr"}
    columns = list(dict.fromkeys(name for record in records for name in record))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([names.get(name, name) for name in columns])
    for record in records:
        writer.writerow([f"{record[name]:.6g}" if name in record else "" for name in columns])
    return out.getvalue()


def as_text(records: list[Record]) -> str:
    """Return the lines that a plain loop prints."""
    lines = []
    for record in records:
        pairs = [
            f"{name} {value:.5g}" for name, value in record.items() if not name.startswith("eval") and name != "step"
        ]
        lines.append(f"iter {record['step']:.0f}: " + ", ".join(pairs))
        if "eval_loss" in record:
            accuracy = f", val acc {record['eval_accuracy']:.4f}" if "eval_accuracy" in record else ""
            lines.append(f"step {record['step']:.0f}: val loss {record['eval_loss']:.4f}{accuracy}")
    return "\n".join(lines) + "\n"


def as_history(records: list[Record]) -> Iterator[Record]:
    """Yield the records as the Hugging Face Trainer keeps them: evaluations apart."""
    for record in records:
        yield {name: value for name, value in record.items() if not name.startswith("eval")}
        if "eval_loss" in record:
            yield {
                name: value for name, value in record.items() if name.startswith("eval") or name in ("step", "epoch")
            }
