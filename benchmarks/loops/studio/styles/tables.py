"""CSV and TSV in the ways of tools and people."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.loops.studio.core import Record
from benchmarks.loops.studio.styles.common import by_epoch, keys, simple_yaml, spill


def _write(path: Path, heads: list[str], rows: list[list[Any]], sep: str = ",") -> None:
    with path.open("w", newline="") as f:
        out = csv.writer(f, delimiter=sep)
        out.writerow(heads)
        out.writerows(rows)


def plain(rec: Record, folder: Path) -> None:
    """A CSV with dotted headers and a JSON configuration."""
    rows = by_epoch(rec)
    names = keys(rows)
    _write(
        folder / "metrics.csv",
        ["iter", "epoch", "elapsed_s", *(n.replace(":", ".") for n in names)],
        [
            [
                r["step"],
                round(r["epoch"], 3),
                round(r["clock"], 2),
                *(f"{r[n]:.6g}" if n in r else "" for n in names),
            ]
            for r in rows
        ],
    )
    (folder / "cfg.json").write_text(json.dumps(rec.config))
    spill(rec, folder / "stderr.log")


def german(rec: Record, folder: Path) -> None:
    """Semicolons, decimal commas and German headers."""
    words = {
        "loss": "Verlust",
        "acc": "Genauigkeit",
        "lr": "Lernrate",
        "grad_norm": "Gradientennorm",
        "train": "Training",
        "val": "Validierung",
        "test": "Test",
    }
    rows = by_epoch(rec)
    names = keys(rows)
    heads = ["Schritt", *(" ".join(words.get(p, p) for p in reversed(n.split(":"))) for n in names)]
    _write(
        folder / "protokoll.csv",
        heads,
        [[r["step"], *(f"{r[n]:.5f}".replace(".", ",") if n in r else "" for n in names)] for r in rows],
        ";",
    )
    (folder / "einstellungen.txt").write_text("\n".join(f"{k} = {v}" for k, v in rec.config.items()) + "\n")
    spill(rec, folder / "fehler.txt")


def tsv(rec: Record, folder: Path) -> None:
    """TSV with odd headers and comments."""
    words = {"loss": "obj", "acc": "top1", "lr": "eta", "grad_norm": "|g|"}
    rows = by_epoch(rec)
    names = keys(rows)
    heads = ["#upd"] + [f"{words.get(n.split(':')[1], n.split(':')[1])}[{n.split(':')[0]}]" for n in names]
    out = [f"# {k}\t{v}" for k, v in rec.config.items()] + ["\t".join(heads)]
    out += ["\t".join([str(r["step"]), *(f"{r[n]:.5g}" if n in r else "NA" for n in names)]) for r in rows]
    out += ["# " + t for e in rec.texts() for t in e.text.split("\n")]
    (folder / "curve.tsv").write_text("\n".join(out) + "\n")


def lightning(rec: Record, folder: Path) -> None:
    """Lightning's CSVLogger: empty cells, train and validation in separate lines."""
    names = list(dict.fromkeys(f"{e.split}_{k}" if k != "lr" else "lr-Adam" for e in rec.rows() for k in e.values))
    rows = []
    for e in rec.rows():
        own = {f"{e.split}_{k}" if k != "lr" else "lr-Adam": v for k, v in e.values.items()}
        rows.append([max(0, int(-(-e.epoch // 1)) - 1), e.step - 1, *(own.get(n, "") for n in names)])
    where = folder / "lightning_logs" / "version_0"
    where.mkdir(parents=True)
    _write(where / "metrics.csv", ["epoch", "step", *names], rows)
    (where / "hparams.yaml").write_text(simple_yaml(rec.config))
    spill(rec, folder / "stderr.txt")


def keras_csv(rec: Record, folder: Path) -> None:
    """Keras' CSVLogger: epochs from zero, alphabetical columns."""
    words = {"acc": "accuracy", "lr": "learning_rate"}
    rows = by_epoch(rec)
    names = keys(rows)

    def word(n: str) -> str:
        split, key = n.split(":")
        return ("" if split == "train" else split + "_") + words.get(key, key)

    names.sort(key=word)
    _write(
        folder / "training.log",
        ["epoch", *map(word, names)],
        [[i, *(r.get(n, "NA") for n in names)] for i, r in enumerate(rows)],
    )
    (folder / "model_config.json").write_text(json.dumps(rec.config, indent=4))
    spill(rec, folder / "stderr.txt")


def padded(rec: Record, folder: Path) -> None:
    """A results.csv with padded columns and slashes, as YOLO writes it."""
    rows = by_epoch(rec)
    names = keys(rows)
    heads = [
        "epoch" if rec.epochs > 1 else "step",
        *(n.replace(":", "/").replace("val/m", "metrics/m") for n in names),
    ]
    out = [",".join(f"{h:>23}" for h in heads)]
    for r in rows:
        at = f"{r['epoch']:g}" if rec.epochs > 1 else str(r["step"])
        out.append(",".join(f"{c:>23}" for c in [at, *(f"{r[n]:.5g}" if n in r else "" for n in names)]))
    (folder / "results.csv").write_text("\n".join(out) + "\n")
    (folder / "args.yaml").write_text(simple_yaml(rec.config))
    spill(rec, folder / "stderr.txt")


def long_table(rec: Record, folder: Path) -> None:
    """A tidy table: a line for each value."""
    rows = [[e.step, e.split, k, f"{v:.6g}"] for e in rec.rows() for k, v in e.values.items()]
    _write(folder / "measurements.csv", ["step", "subset", "metric", "value"], rows)
    (folder / "params.yml").write_text(simple_yaml(rec.config))
    spill(rec, folder / "messages.txt")


WRITERS: dict[str, Callable[[Record, Path], None]] = {
    "csv_plain": plain,
    "csv_german": german,
    "tsv_odd": tsv,
    "lightning_csv": lightning,
    "keras_csv": keras_csv,
    "yolo_csv": padded,
    "csv_tidy": long_table,
}
