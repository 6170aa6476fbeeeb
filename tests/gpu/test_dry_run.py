"""The command that measures on a GPU, run without one: as much of it as a CPU can do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from benchmarks.gpu import __main__ as gpu
from benchmarks.gpu.page import page
from benchmarks.gpu.running import Clock, Skip, Told, run_case

LEAST = {"snapshots": 20, "estimates": 6, "recorder": 2, "probes": 6}
"""Cases that pass without a GPU."""


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("part", gpu.PARTS)
def test_what_can_be_checked_without_a_gpu_is_right_and_written_into_a_folder(part: str, tmp_path: Path) -> None:
    code = gpu.main(["--dry", "--only", part, "--into", str(tmp_path)])

    figures = json.loads((tmp_path / "gpu.json").read_text(encoding="utf-8"))
    outcomes = figures["outcomes"]
    assert code == 0
    assert figures["dry"]
    assert [outcome for outcome in outcomes if outcome["state"] in ("failed", "error")] == []
    assert sum(outcome["state"] == "passed" for outcome in outcomes) >= LEAST[part]
    assert all("GPU" in outcome["why"] for outcome in outcomes if outcome["state"] == "skipped")
    assert "Not yet measured on a GPU" in (tmp_path / "gpu.md").read_text(encoding="utf-8")


def test_the_page_is_written_from_the_figures_that_are_kept() -> None:
    kept = json.loads(gpu.FIGURES.read_text(encoding="utf-8"))

    assert gpu.PAGE.read_text(encoding="utf-8") == page(kept)
    assert kept["dry"] is ("Not yet measured on a GPU" in gpu.PAGE.read_text(encoding="utf-8"))


def test_a_case_that_breaks_is_an_outcome_with_where_it_broke() -> None:
    def breaks() -> Told:
        raise ValueError("no such kernel")

    outcome = run_case("part", "case", Clock(60), breaks)

    assert outcome.state == "error"
    assert "ValueError: no such kernel" in outcome.why


def test_a_case_that_cannot_be_run_here_or_comes_too_late_is_skipped_with_its_reason() -> None:
    def skips() -> Told:
        raise Skip("needs two GPUs")

    assert run_case("part", "case", Clock(60), skips).why == "needs two GPUs"
    late = run_case("part", "case", Clock(0), skips)
    assert (late.state, late.why) == ("skipped", "no time was left")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_command_says_how_to_run_it_dry(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        gpu.main([])

    assert "--dry" in capsys.readouterr().err
