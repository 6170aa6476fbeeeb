"""Folders of trackers: wandb, MLflow, TensorBoard exports, Sacred, ClearML-like."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

from benchmarks.loops.studio.core import Record
from benchmarks.loops.studio.styles.common import by_epoch, keys, simple_yaml, spill


def wandb(rec: Record, folder: Path) -> None:
    """A wandb export: history, summary, config with values."""
    rows = by_epoch(rec)
    names = keys(rows)
    with (folder / "history.csv").open("w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["_step", "_runtime", "_timestamp", *(n.replace(":", "/") for n in names)])
        for r in rows:
            out.writerow(
                [
                    r["step"],
                    round(r["clock"], 3),
                    round(rec.started + r["clock"], 3),
                    *(r.get(n, "") for n in names),
                ]
            )
    summary = {n.replace(":", "/"): next((r[n] for r in reversed(rows) if n in r), None) for n in names}
    summary |= {"_step": rows[-1]["step"] if rows else 0, "_runtime": rec.clock}
    (folder / "wandb-summary.json").write_text(json.dumps(summary))
    (folder / "config.yaml").write_text(
        "wandb_version: 1\n" + "".join(f"{k}:\n  desc: null\n  value: {v}\n" for k, v in rec.config.items())
    )
    spill(rec, folder / "output.log")


def mlflow(rec: Record, folder: Path) -> None:
    """An MLflow run folder."""
    for name in ("metrics", "params", "tags"):
        (folder / name).mkdir()
    for k, v in rec.config.items():
        (folder / "params" / k).write_text(str(v))
    lines: dict[str, list[str]] = {}
    for e in rec.rows():
        for k, v in e.values.items():
            ms = int(1000 * (rec.started + e.clock))
            lines.setdefault(f"{e.split}_{k}", []).append(f"{ms} {v} {e.step}")
    for name, text in lines.items():
        (folder / "metrics" / name).write_text("\n".join(text) + "\n")
    (folder / "tags" / "mlflow.runName").write_text("bold-crane-412")
    crashed = any("Traceback" in e.text for e in rec.texts())
    (folder / "meta.yaml").write_text(
        simple_yaml(
            {
                "artifact_uri": "file:///mlruns/0/artifacts",
                "status": 4 if crashed else 3,
                "start_time": int(1000 * rec.started),
                "end_time": int(1000 * (rec.started + rec.clock)),
            }
        )
    )
    if rec.texts():
        (folder / "artifacts").mkdir()
        spill(rec, folder / "artifacts" / "stderr.txt")


def board(rec: Record, folder: Path) -> None:
    """CSV downloads of TensorBoard, one for each tag."""
    lines: dict[str, list[str]] = {}
    for e in rec.rows():
        for k, v in e.values.items():
            lines.setdefault(f"{k}_{e.split}", []).append(f"{rec.started + e.clock},{e.step},{v}")
    for name, text in lines.items():
        (folder / f"run-.-tag-{name}.csv").write_text("Wall time,Step,Value\n" + "\n".join(text) + "\n")
    (folder / "hparams.txt").write_text("\n".join(f"{k}: {v}" for k, v in rec.config.items()) + "\n")
    spill(rec, folder / "console.txt")


def sacred(rec: Record, folder: Path) -> None:
    """Sacred's file observer: config.json, metrics.json and cout.txt."""
    out: dict[str, dict[str, list[float]]] = {}
    for e in rec.rows():
        for k, v in e.values.items():
            m = out.setdefault(f"{e.split}.{k}", {"steps": [], "values": []})
            m["steps"].append(e.step)
            m["values"].append(v)
    (folder / "metrics.json").write_text(json.dumps(out, indent=1))
    (folder / "config.json").write_text(json.dumps(rec.config, indent=1))
    crashed = any("Traceback" in e.text for e in rec.texts())
    (folder / "run.json").write_text(
        json.dumps({"status": "FAILED" if crashed else "COMPLETED", "host": {"hostname": "lab3"}})
    )
    (folder / "cout.txt").write_text("\n".join(e.text for e in rec.texts()) + "\n")


WRITERS: dict[str, Callable[[Record, Path], None]] = {
    "wandb_export": wandb,
    "mlflow": mlflow,
    "tensorboard_csv": board,
    "sacred": sacred,
}
