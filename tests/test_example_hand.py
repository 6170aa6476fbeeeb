"""The example of a hand: it trains runs with known faults, and what it leaves is labelled and judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from benchmarks.corpus.example import FAULTS, make
from benchmarks.corpus.labels import Label, read_labels, write_labels
from benchmarks.faults.report import judge, report

from mldebug_mcp import read_run

GROSS = ("healthy", "lr_too_high", "params_not_training", "overfitting", "hang", "out_of_memory")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("example")
    write_labels(place, {f"{cause}_0": make(cause, 0, place / f"{cause}_0") for cause in GROSS})
    return place


def test_each_run_has_a_log_and_a_label_with_the_injected_cause(folder: Path) -> None:
    labels = read_labels(folder)
    assert {label.cause for label in labels.values()} == {*GROSS}
    assert all("loss" in read_run(folder / name) for name in labels)


def test_gross_faults_are_named_among_the_first_three(folder: Path) -> None:
    judged = judge(folder, "example")
    assert [one.name for one in judged if not one.right(3)] == []
    assert f"| faulty runs whose log shows it | {len(GROSS) - 1} |" in report([], {"example": judged})


def test_a_run_that_stops_has_its_last_words_and_its_plan_in_the_folder(folder: Path) -> None:
    run = folder / "hang_0"
    assert "Watchdog caught collective operation timeout" in (run / "train.log").read_text()
    assert json.loads((run / "config.json").read_text())["max_steps"] == 300


def test_a_recording_of_a_run_is_read_and_says_more_than_its_log(tmp_path: Path) -> None:
    label = make("healthy", 1, tmp_path / "recorded", recorded=True)
    assert label == Label("healthy", steps=300)
    recorded = read_run(tmp_path / "recorded")
    make("healthy", 1, tmp_path / "bare")
    assert {*read_run(tmp_path / "bare").series} < {*recorded.series}


def test_the_command_makes_every_cause_and_an_index(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.corpus.example", "--into", str(tmp_path / "new"), "--seeds", "1"]
    subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).parent.parent)
    assert {label.cause for label in read_labels(tmp_path / "new").values()} == {*FAULTS}
