"""Finding runs and making one, in a process of a pool or in this one."""

import fnmatch
import json
import shutil
import time
import traceback
from importlib import import_module
from pathlib import Path

from benchmarks.loops.language.catalog import Run

TABLES = ("runs_rl", "runs_text", "runs_hub", "runs_crash", "runs_lm")


def catalogue(pattern: str = "*") -> list[Run]:
    """All runs whose key fits the pattern."""
    tables = [import_module(f"benchmarks.loops.language.{table}").RUNS for table in TABLES]
    return [run for table in tables for run in table if fnmatch.fnmatch(run.key, pattern)]


def make(key: str, into: Path, records: Path | None) -> str:
    """Make one run in this process; returns a line about it."""
    import torch

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    run = next(run for run in catalogue() if run.key == key)
    shutil.rmtree(into / run.name, ignore_errors=True)
    begun = time.perf_counter()
    rows = run.make(into / run.name)
    if records:
        records.mkdir(parents=True, exist_ok=True)
        text = "\n".join(json.dumps(row) for row in rows)
        (records / f"{key.replace('/', '__')}.jsonl").write_text(text, encoding="utf-8")
    return f"{run.name} {key} {time.perf_counter() - begun:.1f}s"


def attempt(key: str, into: Path, records: Path | None) -> str:
    """Like make, but a failure is a line that says so."""
    try:
        return make(key, into, records)
    except Exception:  # noqa: BLE001 - one broken run must not stop the others
        return f"FAILED {key}\n{traceback.format_exc()}"
