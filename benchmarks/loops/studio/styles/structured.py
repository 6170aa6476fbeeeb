"""JSON lines, history files, YAML, notes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.loops.studio.core import Record
from benchmarks.loops.studio.styles.common import by_epoch, keys, long, num, share, simple_yaml, spill, stamp


def flat(rec: Record, folder: Path) -> None:
    """JSON lines with flat keys."""
    with (folder / "log.jsonl").open("w") as f:
        f.write(json.dumps({"event": "config", **rec.config}) + "\n")
        for e in rec.entries:
            if e.split == "text":
                f.write(json.dumps({"event": "message", "step": e.step, "text": e.text}) + "\n")
                continue
            row: dict[str, Any] = {"it": e.step, "ep": round(e.epoch, 3), "t": round(e.clock, 2)}
            f.write(json.dumps(row | {f"{e.split}_{k}": v for k, v in e.values.items()}) + "\n")


def nested(rec: Record, folder: Path) -> None:
    """JSON lines with nested metrics, and the configuration beside them."""
    with (folder / "events.ndjson").open("w") as f:
        for e in rec.entries:
            row: dict[str, Any] = {
                "ts": stamp(rec, e, "%Y-%m-%dT%H:%M:%SZ"),
                "level": "info" if e.split != "text" else "warn",
            }
            if e.split == "text":
                row["msg"] = e.text
            else:
                row |= {
                    "msg": "metrics",
                    "progress": {"global_step": e.step, "epoch": e.epoch},
                    "metrics": {e.split: {k: round(v, 6) for k, v in e.values.items()}},
                }
            f.write(json.dumps(row) + "\n")
    (folder / "config.json").write_text(json.dumps({"hparams": rec.config}, indent=2))


def pretty(rec: Record, folder: Path) -> None:
    """One JSON document for all: settings, results and remarks."""
    doc = {
        "settings": rec.config,
        "log": [{"iteration": e.step, "phase": e.split, "results": e.values} for e in rec.rows()],
        "remarks": [{"iteration": e.step, "remark": e.text} for e in rec.texts()],
    }
    (folder / "experiment.json").write_text(json.dumps(doc, indent=1))


def history(rec: Record, folder: Path) -> None:
    """A Keras history: a list for each metric."""
    words = {"acc": "accuracy", "lr": "learning_rate"}
    out: dict[str, list[float]] = {}
    for e in rec.rows():
        for k, v in e.values.items():
            name = words.get(k, k)
            out.setdefault(name if e.split == "train" else f"{e.split}_{name}", []).append(v)
    (folder / "history.json").write_text(json.dumps(out))
    (folder / "hparams.json").write_text(json.dumps(rec.config))
    spill(rec, folder / "stderr.txt")


def yaml_list(rec: Record, folder: Path) -> None:
    """YAML with a list of rows."""
    out = ["config:\n" + simple_yaml(rec.config, "  ").rstrip(), "history:"]
    for r in by_epoch(rec):
        out.append(f"  - step: {r['step']}")
        groups: dict[str, list[str]] = {}
        for k in r:
            if ":" in k:
                split, name = k.split(":")
                value = ".nan" if r[k] != r[k] else f"{r[k]:.6g}"
                groups.setdefault(split, []).append(f"      {name}: {value}")
        for split, lines in groups.items():
            out += [f"    {split}:", *lines]
    if rec.texts():
        out += ["messages: |"] + ["  " + t for e in rec.texts() for t in e.text.split("\n")]
    (folder / "run.yaml").write_text("\n".join(out) + "\n")


def notes(rec: Record, folder: Path) -> None:
    """A lab diary in Markdown with a table; long runs are thinned to every few rows."""
    rows = by_epoch(rec)
    names = keys(rows)
    out = ["# Run diary", "", "## Setup", ""]
    out += [f"- **{k.replace('_', ' ')}**: {v}" for k, v in rec.config.items()]
    out += [
        "",
        "## Results",
        "",
        "| " + " | ".join(["step" if long(rec) else "epoch", *(n.replace(":", " ") for n in names)]) + " |",
        "|" + "---|" * (len(names) + 1),
    ]
    for r in rows:
        cells = [f"{100 * r[n]:.1f} %" if n in r and share(n) else num(r[n]) if n in r else "" for n in names]
        out.append(f"| {r['step'] if long(rec) else format(r['epoch'], 'g')} | " + " | ".join(cells) + " |")
    if rec.texts():
        out += ["", "## Messages", "", "```", *(e.text for e in rec.texts()), "```"]
    (folder / "NOTES.md").write_text("\n".join(out) + "\n")


def per_metric(rec: Record, folder: Path) -> None:
    """A text file for each metric, step and value."""
    lines: dict[str, list[str]] = {}
    for e in rec.rows():
        for k, v in e.values.items():
            lines.setdefault(f"{e.split}_{k}", []).append(f"{e.step} {v:.6g}")
    for name, text in lines.items():
        (folder / f"{name}.txt").write_text("\n".join(text) + "\n")
    (folder / "opts.txt").write_text("\n".join(f"--{k} {v}" for k, v in rec.config.items()) + "\n")
    spill(rec, folder / "err.log")


WRITERS: dict[str, Callable[[Record, Path], None]] = {
    "jsonl_flat": flat,
    "ndjson_nested": nested,
    "json_document": pretty,
    "keras_history": history,
    "yaml_list": yaml_list,
    "markdown": notes,
    "per_metric": per_metric,
}
