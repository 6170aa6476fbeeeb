"""A folder is not a run: logs are put together by what they hold; runs of one sweep know of each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mldebug_mcp.errors import InputError
from mldebug_mcp.logs import read_run


def _log(path: Path, factor: float, *, count: int = 60, every: int = 10, **more: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"step": at * every, "loss": factor * (1 + 2 / (1 + at / 9)), **more} for at in range(1, count + 1)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_unrelated_logs_of_one_folder_are_read_as_the_runs_they_are(tmp_path: Path) -> None:
    _log(tmp_path / "speech.jsonl", 1.0)
    _log(tmp_path / "vision.jsonl", 0.4, count=80, grad_norm=2.0)
    run = read_run(tmp_path)
    assert set(run.series) == {"loss", "grad_norm"}
    assert any("vision.jsonl, which is read; other runs in it: speech.jsonl" in note for note in run.notes)
    assert any("speech.jsonl (60)" in note or "other runs in it: speech.jsonl" in note for note in run.notes)
    for name in ("speech", "speech.jsonl"):
        assert read_run(tmp_path, run=name)["loss"].value[0] == pytest.approx(2.8)


def test_a_run_that_no_log_of_a_folder_holds_is_an_error_that_lists_them(tmp_path: Path) -> None:
    _log(tmp_path / "speech.jsonl", 1.0)
    _log(tmp_path / "vision.jsonl", 0.4)
    with pytest.raises(
        InputError, match=r"no run 'text'; there are .*speech.jsonl \(60\).*vision.jsonl|vision.*speech"
    ):
        read_run(tmp_path, run="text")


def test_training_evaluation_and_output_of_one_run_are_merged(tmp_path: Path) -> None:
    rows = [(at * 10, round(3 - at / 50, 4)) for at in range(1, 61)]
    (tmp_path / "train.csv").write_text("step,loss\n" + "".join(f"{step},{loss}\n" for step, loss in rows))
    (tmp_path / "eval.csv").write_text(
        "step,eval_loss\n" + "".join(f"{at},{3.1 - at / 500}\n" for at in (200, 400, 600))
    )
    (tmp_path / "stdout.log").write_text("".join(f"step {step}: loss {loss:.3f} lr 0.001\n" for step, loss in rows))
    run = read_run(tmp_path)
    assert {"loss", "eval_loss", "learning_rate"} <= set(run.series)
    assert (run.records, len(run["loss"]), run["eval_loss"].step.tolist()) == (60, 60, [200, 400, 600])
    assert run.siblings == ()


def test_the_logs_of_the_ranks_of_one_run_are_one_run(tmp_path: Path) -> None:
    for rank in range(3):
        _log(tmp_path / f"log_rank{rank}.jsonl", 1.0 + 0.3 * rank)
    run = read_run(tmp_path)
    assert (run.records, run.siblings) == (60, ())


def test_an_error_in_the_other_file_of_a_run_ended_it(tmp_path: Path) -> None:
    _log(tmp_path / "metrics.jsonl", 1.0)
    (tmp_path / "job.err").write_text("Traceback (most recent call last):\nRuntimeError: CUDA out of memory\n")
    run = read_run(tmp_path)
    assert run.fatal[-1].text == "RuntimeError: CUDA out of memory"
    assert run.ending.how == "error"


def test_runs_of_a_sweep_know_of_each_other_and_of_what_is_set_otherwise(tmp_path: Path) -> None:
    for number, rate in enumerate((0.001, 0.003, 0.01)):
        folder = tmp_path / f"run_{number}"
        _log(folder / "metrics.jsonl", 1.0 + number / 10, count=60 + number)
        settings = {"learning_rate": rate, "weight_decay": 0.1, "seed": 7, "warmup_steps": 10, "max_steps": 700}
        (folder / "config.json").write_text(json.dumps(settings))
    run = read_run(tmp_path, run="run_1")
    assert {(one.name, one.settings["learning_rate"]) for one in run.siblings} == {("run_0", 0.001), ("run_2", 0.01)}
    assert all(set(one.settings) == {"learning_rate"} for one in run.siblings)
    assert all(Path(one.path).parent.name == one.name for one in run.siblings)


def test_a_run_of_another_kind_beside_it_is_no_sibling(tmp_path: Path) -> None:
    _log(tmp_path / "a" / "metrics.jsonl", 1.0, count=90)
    other = tmp_path / "b" / "metrics.jsonl"
    other.parent.mkdir()
    other.write_text("".join(f'{{"episode": {at}, "reward": {at}, "entropy": 0.5}}\n' for at in range(50)))
    run = read_run(tmp_path)
    assert "loss" in run
    assert run.siblings == ()
