"""How frameworks write the records of a run."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks.faults.experiment import Experiment, Record

COUNTERS = ("step", "epoch")


def write_log(run: Path, kind: str, records: list[Record], experiment: Experiment) -> None:
    """Write the log of a run into its folder; `kind` is one of the formats of the experiment."""
    if kind == "jsonl":
        (run / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    elif kind == "csv":
        (run / "metrics.csv").write_text(as_csv(records, experiment.columns), encoding="utf-8")
    elif kind == "text":
        (run / "train.log").write_text(as_text(records) + experiment.last_words, encoding="utf-8")
    elif kind == "own":
        (run / experiment.own_file).write_text(experiment.own_log, encoding="utf-8")
    else:
        state = {
            "global_step": int(records[-1]["step"]),
            "max_steps": experiment.steps,
            "log_history": list(as_history(records)),
        }
        (run / "trainer_state.json").write_text(json.dumps(state), encoding="utf-8")


def as_csv(records: list[Record], names: dict[str, str]) -> str:
    """Return a table whose columns have the framework's names."""
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
        shown = {name: value for name, value in record.items() if not name.startswith("eval") and name != "step"}
        pairs = ", ".join(f"{name} {value:.5g}" for name, value in shown.items())
        lines.append(f"iter {record['step']:.0f}: {pairs}")
        if "eval_loss" in record:
            names = {"eval_loss": "val loss", "eval_accuracy": "val acc"}
            scores = {names.get(name, name): value for name, value in record.items() if name.startswith("eval")}
            judged = ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
            lines.append(f"step {record['step']:.0f}: {judged}")
    return "\n".join(lines) + "\n"


def as_history(records: list[Record]) -> Iterator[Record]:
    """Yield the records as the Hugging Face Trainer keeps them: evaluations apart."""
    for record in records:
        training = {name: value for name, value in record.items() if not name.startswith("eval")}
        if len(training.keys() - set(COUNTERS)):
            yield training
        if any(name.startswith("eval") for name in record):
            yield {name: value for name, value in record.items() if name.startswith("eval") or name in COUNTERS}
