"""Logs that are files of data: CSV, JSON, parquet, and those of well-known loggers."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import polars as pl
import yaml

from benchmarks.loops.science.writers.page import FIRST_DAY, Page

Row = dict[str, float]
OWN_NAMES = {
    "loss": "objective",
    "grad_norm": "|g|",
    "lr": "eta",
    "step_time": "sec_per_iter",
    "data_time": "sec_loading",
}


def csv_own(page: Page) -> None:
    """One CSV with names of the author's own, evaluation in the same rows where there was one."""
    rows: dict[int, Row] = {}
    for entry in page.entries():
        row = rows.setdefault(entry.step, {"iter": entry.step, "pass": entry.epoch})
        for name, value in entry.values.items():
            row[f"dev_{name}" if entry.kind == "eval" else OWN_NAMES.get(name, name)] = round(value, 6)
    _save_csv(page.folder / "log.csv", list(rows.values()))


def csv_pair(page: Page) -> None:
    """One CSV of training and one of evaluation."""
    for kind, name in (("train", "train.csv"), ("eval", "valid.csv")):
        rows: list[Row] = [{"step": e.step, **e.values} for e in page.entries() if e.kind == kind]
        if rows:
            _save_csv(page.folder / name, rows)


def jsonl_flat(page: Page) -> None:
    """JSON lines with the split as a field."""
    lines = [
        json.dumps({"step": e.step, "epoch": e.epoch, "split": "train" if e.kind == "train" else "val", **e.values})
        for e in page.entries()
        if e.kind != "note"
    ]
    page.write("metrics.jsonl", lines)


def jsonl_nested(page: Page) -> None:
    """JSON lines with one object for each split."""
    lines = [
        json.dumps(
            {"iteration": e.step, "time": round(e.at, 3), {"train": "training", "eval": "validation"}[e.kind]: e.values}
        )
        for e in page.entries()
        if e.kind != "note"
    ]
    page.write("progress.jsonl", lines)


def json_history(page: Page) -> None:
    """One JSON with a list of records for each split."""
    history: dict[str, list[Row]] = {"train": [], "test": []}
    for entry in page.entries():
        if entry.kind != "note":
            history["train" if entry.kind == "train" else "test"].append({"step": entry.step, **entry.values})
    page.write("results.json", [json.dumps(history)])


def parquet(page: Page) -> None:
    """One parquet table in wide form."""
    rows = [
        {"step": e.step, "epoch": e.epoch} | {f"{e.kind}/{name}": value for name, value in e.values.items()}
        for e in page.entries()
        if e.kind != "note"
    ]
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(page.folder / "run.parquet")


def lightning(page: Page) -> None:
    """The CSV logger of Lightning: sparse rows under `lightning_logs/version_0`."""
    version = page.folder / "lightning_logs" / "version_0"
    version.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for entry in page.entries():
        if entry.kind == "train":
            named = {"lr-Adam" if name == "lr" else f"train_{name}": value for name, value in entry.values.items()}
        else:
            named = {
                name if name.startswith("train_") else f"val_{name}": value for name, value in entry.values.items()
            }
        if entry.kind != "note":
            rows.append({"epoch": entry.epoch, "step": entry.step - 1, **named})
    _save_csv(version / "metrics.csv", rows)
    hparams = page.run.experiment.settings() if page.run.settings else {}
    (version / "hparams.yaml").write_text(yaml.safe_dump(hparams), encoding="utf-8")


def _epochs(page: Page) -> list[Row]:
    rows: list[Row] = []
    for epoch in page.epochs():
        held = {name if name.startswith("train_") else f"val_{name}": value for name, value in epoch.held.items()}
        if epoch.train:
            rows.append({"epoch": epoch.number, **epoch.train, **held})
    return rows


def keras_csv(page: Page) -> None:
    """The CSV logger of Keras: a row an epoch."""
    _save_csv(page.folder / "training.log.csv", _epochs(page))


def keras_json(page: Page) -> None:
    """The `History.history` of Keras, dumped: a list for each name."""
    rows = _epochs(page)
    names = {name: None for row in rows for name in row if name != "epoch"}
    history = {name: [row[name] for row in rows if name in row] for name in names}
    page.write("history.json", [json.dumps(history)])


def wandb_csv(page: Page) -> None:
    """An export of Weights & Biases: a wide table."""
    rows: list[Row] = [
        {"Step": e.step, "_timestamp": (FIRST_DAY.timestamp() + e.at)}
        | {_slashed(e.kind, n): v for n, v in e.values.items()}
        for e in page.entries()
        if e.kind != "note"
    ]
    _save_csv(page.folder / "wandb_export_2025-03-04.csv", rows)


def wandb_jsonl(page: Page) -> None:
    """The history of a run of Weights & Biases, a line a record."""
    rows: list[Row] = [
        {_slashed(e.kind, name): value for name, value in e.values.items()}
        | {"_step": e.step, "_runtime": round(e.at, 2), "_timestamp": FIRST_DAY.timestamp() + e.at}
        for e in page.entries()
        if e.kind != "note"
    ]
    page.write("wandb-history.jsonl", [json.dumps(row) for row in rows])


def tensorboard(page: Page) -> None:
    """Event files of TensorBoard."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(page.folder / "tb")) as writer:
        for entry in page.entries():
            when = FIRST_DAY.timestamp() + entry.at
            for name, value in entry.values.items():
                tag = _slashed(entry.kind, name)
                writer.add_scalar(tag, value, entry.step, walltime=when)


def _slashed(kind: str, name: str) -> str:
    if name.startswith("train_"):
        return name.replace("train_", "train/", 1)
    return f"val/{name}" if kind == "eval" else f"train/{name}"


def _save_csv(path: Path, rows: list[Row]) -> None:
    names = list({name: None for row in rows for name in row})
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
