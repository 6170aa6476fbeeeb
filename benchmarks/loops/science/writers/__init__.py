"""Styles of logs, by the name that the label says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.loops.science.journal import Journal
from benchmarks.loops.science.run import Run
from benchmarks.loops.science.writers import consoles, files
from benchmarks.loops.science.writers.page import Page
from benchmarks.loops.science.writers.settings import save_settings

STYLES: dict[str, Callable[[Page], None]] = {
    "csv_own": files.csv_own,
    "csv_pair": files.csv_pair,
    "jsonl_flat": files.jsonl_flat,
    "jsonl_nested": files.jsonl_nested,
    "json_history": files.json_history,
    "parquet": files.parquet,
    "lightning": files.lightning,
    "keras_csv": files.keras_csv,
    "keras_json": files.keras_json,
    "wandb_csv": files.wandb_csv,
    "wandb_jsonl": files.wandb_jsonl,
    "tensorboard": files.tensorboard,
    "prints": consoles.prints,
    "epoch_prints": consoles.epoch_prints,
    "keras_console": consoles.keras_console,
    "logging": consoles.logging_lines,
    "logfmt": consoles.logfmt,
    "tqdm": consoles.tqdm_lines,
    "table": consoles.table,
    "boxes": consoles.boxes,
}
CONSOLES = {"prints", "epoch_prints", "keras_console", "logging", "logfmt", "tqdm", "table", "boxes"}


def write(run: Run, journal: Journal, folder: Path) -> None:
    """Write a run's log and settings into its folder."""
    page = Page(run, journal, folder)
    folder.mkdir(parents=True, exist_ok=True)
    if run.settings:
        save_settings(page, printed=run.style in CONSOLES)
    STYLES[run.style](page)
    said = [entry for entry in journal.entries if entry.kind == "note"]
    if said and run.style not in CONSOLES:
        lines = [f"[step {entry.step}] {entry.text}\n" for entry in said]
        (folder / "stdout.txt").write_text("".join(lines), encoding="utf-8")
