"""The benchmark of runs that others made: every kind of label is understood, and a closed run is never shown."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from benchmarks.foreign.answers import answers
from benchmarks.foreign.labels import labelled
from benchmarks.foreign.tables import report

CRASH = "RuntimeError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.15 GiB\n"


def sound(records: int = 200) -> str:
    noise = random.Random(1)
    losses = [0.4 + 2 * math.exp(-i / 40) + noise.gauss(0, 0.02) for i in range(records)]
    return "".join(json.dumps({"step": 10 * i, "loss": loss}) + "\n" for i, loss in enumerate(losses, 1))


def folder_of(place: Path, index: str, *entries: Mapping[str, object]) -> Path:
    for entry in entries:
        log = place / str(entry["file"]) if "file" in entry else place / "runs" / str(entry["id"]) / "train.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(str(entry["text"]))
    (place / index).write_text("".join(json.dumps({**entry, "text": None}) + "\n" for entry in entries))
    return place


def measured(folder: Path, *, closed: bool = False, misses: bool = False) -> str:
    return report(answers(labelled(folder, closed=closed)), misses=misses)


def test_injected_and_acceptable_causes_are_right_and_each_half_has_its_column(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path / "runs_of_others",
        "labels.jsonl",
        {"id": "a", "cause": ["out_of_memory"], "acceptable": ["out_of_memory"], "half": "open", "text": CRASH},
        {"id": "b", "cause": ["fragmentation"], "acceptable": ["out_of_memory"], "half": "open", "text": CRASH},
        {"id": "c", "cause": ["overfitting"], "acceptable": ["overfitting"], "half": "closed", "text": CRASH},
    )
    said = measured(folder, closed=True)
    assert "| | runs_of_others open | runs_of_others closed |" in said
    assert "| right cause first | 2 of 2 (1.00) | 0 of 1 (0.00) |" in said


def test_the_closed_half_is_scored_only_when_asked_for_and_its_misses_are_never_listed(tmp_path: Path) -> None:
    hidden = {"id": "hidden", "cause": ["overfitting"], "half": "closed", "text": CRASH}
    shown = {"id": "shown", "cause": ["overfitting"], "half": "open", "text": CRASH}
    folder = folder_of(tmp_path / "runs_of_others", "labels.jsonl", shown, hidden)
    assert "| | runs_of_others open |\n" in measured(folder)
    said = measured(folder, closed=True, misses=True)
    assert "runs/shown" in said
    assert "hidden" not in said


def test_near_causes_are_counted_apart_and_unlabelled_logs_are_left_out(tmp_path: Path) -> None:
    near = {"file": "a.log", "label_kind": "symptom", "right": ["memory_leak"], "near": ["out_of_memory"]}
    unlabelled = {"file": "b.log", "label_kind": "unlabelled", "right": [], "near": []}
    said = measured(folder_of(tmp_path, "index.jsonl", {**near, "text": CRASH}, {**unlabelled, "text": CRASH}))
    assert "| faulty runs | 1 |" in said
    assert "| right cause first | 0 of 1 (0.00) |" in said
    assert "| right or near cause among the first 3 | 1 of 1 (1.00) |" in said


def test_a_healthy_run_that_is_accused_is_a_false_alarm(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path,
        "index.jsonl",
        {"file": "sound.jsonl", "known_problem": "healthy", "text": sound()},
        {"file": "accused.log", "known_problem": "healthy", "text": CRASH},
        {"file": "left_out.log", "known_problem": "unknown", "text": CRASH},
        {"file": "crash.log", "known_problem": "cuda_oom", "text": CRASH},
    )
    said = measured(folder)
    assert "| faulty runs | 1 |" in said
    assert "| healthy runs called healthy | 1 of 2 (0.50) |" in said
    assert "| healthy runs accused of a fault | 1 of 2 (0.50) |" in said


def test_a_log_that_is_refused_is_not_right_and_the_list_says_why(tmp_path: Path) -> None:
    said = measured(
        folder_of(tmp_path, "labels.jsonl", {"id": "a", "cause": ["hang"], "text": "no metric in here\n"}), misses=True
    )
    assert "| logs refused | 1 |" in said
    assert "| right cause first | 0 of 1 (0.00) |" in said
    assert "refused: runs/a: no training log found" in said


@pytest.mark.parametrize(
    ("line", "why"), [("{", "line 1: not an object"), ('{"file": "a", "half": "ajar"}', "half is 'ajar'")]
)
def test_an_index_that_cannot_be_read_is_refused_with_the_line(tmp_path: Path, line: str, why: str) -> None:
    (tmp_path / "index.jsonl").write_text(line)
    with pytest.raises(SystemExit, match=why):
        labelled(tmp_path, closed=True)


def test_a_folder_without_an_index_and_a_problem_without_causes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"no index\.jsonl or labels\.jsonl"):
        labelled(tmp_path, closed=True)
    folder = folder_of(tmp_path, "index.jsonl", {"file": "a.log", "known_problem": "gremlins", "text": CRASH})
    with pytest.raises(SystemExit, match=r"add the causes of 'gremlins'"):
        measured(folder)
