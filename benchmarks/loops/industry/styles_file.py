"""Logs as tables and as the files of trackers."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import yaml

from benchmarks.loops.industry.styles_text import clock, whole
from benchmarks.loops.industry.trace import Row

_Writer = Callable[[Path, list[Row], str], None]


def _wide(path: Path, rows: list[Row], delimiter: str = ",") -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        table.writerow(names)
        for row in rows:
            table.writerow([_cell(name, row[name]) if name in row else "" for name in names])


def _cell(name: str, value: float) -> str:
    kept = whole(name, value)
    return str(kept) if isinstance(kept, int) else f"{kept:.6g}"


def csv_wide(folder: Path, rows: list[Row], _axis: str) -> None:
    """One row a record."""
    _wide(folder / "history.csv", rows)


def tsv(folder: Path, rows: list[Row], _axis: str) -> None:
    """The same with tabs."""
    _wide(folder / "train_log.tsv", rows, "\t")


def lightning(folder: Path, rows: list[Row], axis: str) -> None:
    """What a CSVLogger writes: each source of metrics in rows of its own."""
    sparse: list[Row] = []
    for row in rows:
        head = {name: row[name] for name in ("epoch", axis) if name in row}
        head["epoch"] = float(int(head.get("epoch", 0)))
        held = {name: value for name, value in row.items() if name.startswith("val")}
        sparse.append({**{name: value for name, value in row.items() if name not in held}, **head})
        if held:
            sparse.append({**head, **held})
    _wide(folder / "lightning_logs" / "version_0" / "metrics.csv", sparse)


def csv_long(folder: Path, rows: list[Row], axis: str) -> None:
    """One row a value."""
    lines = ["run_id,step,metric,value"]
    lines += [f"r-7f3a,{int(r[axis])},{n},{_cell(n, v)}" for r in rows for n, v in r.items() if n != axis]
    (folder / "metrics_long.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def jsonl_nested(folder: Path, rows: list[Row], axis: str) -> None:
    """JSON lines with a dictionary for training and one for validation."""
    lines = []
    for index, row in enumerate(rows):
        held = {name: value for name, value in row.items() if "val" in name}
        rest = {name: value for name, value in row.items() if name != axis and name not in held}
        record: dict[str, object] = {"ts": clock(index).isoformat(), axis: whole(axis, row[axis]), "train": rest}
        if held:
            record["validation"] = held
        lines.append(json.dumps(record))
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def jsonl_events(folder: Path, rows: list[Row], axis: str) -> None:
    """JSON lines, each an event with a type."""
    lines = []
    for row in rows:
        held = {name: value for name, value in row.items() if "val" in name}
        rest = {name: whole(name, value) for name, value in row.items() if name not in held}
        lines.append(json.dumps({"event": "train_step", **rest}))
        if held:
            lines.append(json.dumps({"event": "eval", axis: whole(axis, row[axis]), **held}))
    (folder / "events.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def mlflow(folder: Path, rows: list[Row], axis: str) -> None:
    """A file a metric, a line a value: time, value, step."""
    for index, row in enumerate(rows):
        stamp = int(clock(index).timestamp() * 1000)
        for name, value in row.items():
            if name != axis:
                path = folder / "metrics" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("a", encoding="utf-8") as file:
                    file.write(f"{stamp} {value} {int(row[axis])}\n")


def tensorboard(folder: Path, rows: list[Row], axis: str) -> None:
    """Event files."""
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder / "tb"))
    for index, row in enumerate(rows):
        for name, value in row.items():
            if name != axis:
                writer.add_scalar(name, value, int(row[axis]), walltime=clock(index).timestamp())
    writer.close()


def _tracked(rows: list[Row], axis: str) -> list[Row]:
    start = clock(0).timestamp()
    tail = [
        {"_step": float(int(row[axis])), "_runtime": 4.1 * i, "_timestamp": start + 4.1 * i}
        for i, row in enumerate(rows)
    ]
    return [{**row, **more} for row, more in zip(rows, tail, strict=True)]


def wandb_csv(folder: Path, rows: list[Row], axis: str) -> None:
    """A history exported as a table."""
    _wide(folder / "wandb_export_2025-03-11.csv", _tracked(rows, axis))


def wandb_json(folder: Path, rows: list[Row], axis: str) -> None:
    """A history as JSON lines."""
    lines = [json.dumps(row) for row in _tracked(rows, axis)]
    (folder / "wandb-history.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def yaml_records(folder: Path, rows: list[Row], _axis: str) -> None:
    """A list of records."""
    plain = [{name: whole(name, float(f"{value:.6g}")) for name, value in row.items()} for row in rows]
    (folder / "history.yaml").write_text(yaml.safe_dump(plain, sort_keys=False), encoding="utf-8")


def json_columns(folder: Path, rows: list[Row], _axis: str) -> None:
    """One JSON object with a list a column, as a pickled history is kept."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    (folder / "history.json").write_text(json.dumps(columns), encoding="utf-8")


FILES: dict[str, _Writer] = {
    "csv_wide": csv_wide,
    "tsv": tsv,
    "lightning": lightning,
    "csv_long": csv_long,
    "jsonl_nested": jsonl_nested,
    "jsonl_events": jsonl_events,
    "mlflow": mlflow,
    "tensorboard": tensorboard,
    "wandb_csv": wandb_csv,
    "wandb_json": wandb_json,
    "yaml_records": yaml_records,
    "json_columns": json_columns,
}
