"""The benchmark of reading: shares of what is understood, and names only of logs that may be shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.foreign.labels import labelled
from benchmarks.reading.reads import own_logs, read_all
from benchmarks.reading.tables import report

LOG = "".join(f'{{"step": {step}, "loss": {4 - step / 50}, "zorp": {step}}}\n' for step in range(1, 31))


def folder_of(place: Path, **entries: dict[str, object]) -> Path:
    for name, entry in entries.items():
        run = place / "runs" / name
        run.mkdir(parents=True)
        (run / "log.jsonl").write_text(LOG.replace("zorp", f"zorp_{name}"))
        (run / "config.json").write_text(json.dumps({"learning_rate": 0.1, f"frob_{name}": 3}))
        entry["id"] = name
    (place / "labels.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries.values()))
    return place


def measured(folder: Path, *, closed: bool = False, details: bool = False) -> str:
    return report(list(read_all(labelled(folder, closed=closed))), details=details)


def test_shares_of_columns_records_kinds_and_settings_are_counted_by_column(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path / "others",
        a={"half": "open", "n_records": 30, "task": "regression"},
        b={"half": "open", "n_records": 99, "task": "rl_ppo_cartpole"},
        c={"half": "closed"},
    )
    said = measured(folder, closed=True)
    assert "| | others open | others closed |" in said
    assert "| logs read | 2 of 2 (1.00) | 1 of 1 (1.00) |" in said
    assert "| columns of numbers with a role | 2 of 4 (0.50) | 1 of 2 (0.50) |" in said
    assert "| records within 2% of the index | 1 of 2 (0.50) | no such runs |" in said
    assert "| keys of the configuration that are known settings | 2 of 4 (0.50) | 1 of 2 (0.50) |" in said


def test_details_name_what_was_not_understood_of_the_open_half_alone(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, seen={"half": "open", "n_records": 60}, hidden={"half": "closed", "n_records": 60})
    said = measured(folder, closed=True, details=True)
    assert "| zorp_seen | 1 |" in said
    assert "| frob_seen | 1 |" in said
    assert "| runs/seen | 60 | 30 |" in said
    assert "hidden" not in said


def test_a_log_that_is_refused_counts_as_not_read_and_is_listed(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a={"half": "open"})
    (folder / "runs" / "a" / "log.jsonl").write_text("nothing\n")
    said = measured(folder, details=True)
    assert "| logs read | 0 of 1 (0.00) |" in said
    assert "runs/a: no training log found" in said


def test_a_task_of_no_known_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="'juggling' is, is not known"):
        measured(folder_of(tmp_path, a={"task": "juggling"}))


def test_our_own_samples_are_among_what_is_read() -> None:
    names = {one.name for one in own_logs()}
    assert {"tests/logs/samples/timm.log", "tests/logs/samples/run.wandb"} <= names
    assert not [name for name in names if name.endswith((".py", "config.json"))]
