"""A folder is not a run: logs are put together by what they hold; runs of one sweep know of each other."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs import Run, read_run
from mldebug_mcp.logs.files import runs_in
from mldebug_mcp.logs.read import runs_of

SAMPLES = Path(__file__).parent / "samples"
OF_ONE_RUN = ("events.out.tfevents.simple", "mlflow.db", "trackio.db", "run.wandb")
"""Samples that hold the same numbers in several forms."""


def _log(path: Path, factor: float, *, count: int = 60, every: int = 10, **more: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"step": at * every, "loss": factor * (1 + 2 / (1 + at / 9)), **more} for at in range(1, count + 1)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_unrelated_logs_of_one_folder_are_read_as_the_runs_they_are(tmp_path: Path) -> None:
    _log(tmp_path / "speech.jsonl", 1.0)
    _log(tmp_path / "vision.jsonl", 0.4, count=80, grad_norm=2.0)
    run = read_run(tmp_path)
    assert set(run.series) == {"loss", "grad_norm"}
    assert any("holds 2 runs; only vision.jsonl, the longest, is read here" in note for note in run.notes)
    assert any(note.endswith("reads another: speech.jsonl") for note in run.notes)
    for name in ("speech", "speech.jsonl"):
        assert read_run(tmp_path, run=name)["loss"].value[0] == pytest.approx(2.8)


SEED = tuple(round(2.3 / at**0.5, 4) for at in range(1, 13))
KEYED = "Training config: mode lr={rate} batch=64 epochs=12 optimizer=Adam params=1994\n"


def _epochs(path: Path, losses: Sequence[float], rate: float = 0.001) -> None:
    lines = (f"Epoch {at}/12 | train loss {loss} | val loss {loss * 1.1:.4f}\n" for at, loss in enumerate(losses, 1))
    path.write_text(KEYED.format(rate=rate) + "".join(lines))


@pytest.mark.parametrize(
    "names",
    [("mlp_ok.log", "mlp_seed1.log"), ("a.csv", "b.log"), ("run1_train.csv", "run2_val.csv"), ("gpu.log", "local.log")],
)
def test_logs_that_nothing_ties_are_runs_of_their_own(names: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / names[0]).write_text("step,loss\n" + "".join(f"{at},{loss}\n" for at, loss in enumerate(SEED)))
    lines = "".join(f'{{"step": {at}, "reward": {at % 5}.5, "entropy": 0.7}}\n' for at in range(9))
    (tmp_path / names[1]).write_text(lines)
    (place,) = runs_in(tmp_path, [])
    assert {run.path: set(run.series) for run in runs_of(place)} == {
        names[0]: {"loss"}, names[1]: {"reward", "entropy"}
    }  # fmt: skip


def test_two_runs_of_one_script_are_two_runs_even_with_one_seed(tmp_path: Path) -> None:
    _epochs(tmp_path / "mlp.log", SEED)
    _epochs(tmp_path / "mlp_again.log", SEED)
    _epochs(tmp_path / "mlp_killed.log", SEED[:10])
    _epochs(tmp_path / "mlp_hot.log", [loss * 3 for loss in SEED], rate=1.0)
    (place,) = runs_in(tmp_path, [])
    assert {run.path: run.last_step for run in runs_of(place)} == {
        "mlp.log": 12, "mlp_again.log": 12, "mlp_killed.log": 10, "mlp_hot.log": 12
    }  # fmt: skip


def test_the_learning_and_the_test_error_of_a_boosting_are_one_run(tmp_path: Path) -> None:
    for name, last in (("learn_error.tsv", 0.2), ("test_error.tsv", 0.7)):
        rows = "".join(f"{at}\t{0.65 + (last - 0.65) * at / 9:.4f}\n" for at in range(10))
        (tmp_path / name).write_text(f"iter\tLogloss\n{rows}")
    run = read_run(tmp_path)
    assert run["loss"].value[-1] == 0.2
    assert run["eval_loss"].value[-1] == 0.7


def test_error_lines_alone_go_to_the_run_that_their_name_ties_them_to(tmp_path: Path) -> None:
    _epochs(tmp_path / "mlp.log", SEED)
    _epochs(tmp_path / "bert.log", [loss * 2 for loss in SEED])
    (tmp_path / "bert.err").write_text("Traceback (most recent call last):\nRuntimeError: CUDA out of memory\n")
    assert read_run(tmp_path, run="bert.log").ending.how == "error"
    assert read_run(tmp_path, run="mlp.log").fatal == ()


@pytest.mark.parametrize("seed", range(3))
def test_unrelated_logs_tell_the_same_alone_and_in_one_folder(seed: int, tmp_path: Path) -> None:
    samples = [path for path in sorted(SAMPLES.iterdir()) if path.is_file() and path.name not in OF_ONE_RUN]
    chosen = random.Random(seed).sample(samples, 18)
    together = tmp_path / "together"
    together.mkdir()
    alone: dict[str, Run] = {}
    for path in chosen:
        shutil.copy(path, together)
        (tmp_path / path.stem).mkdir(exist_ok=True)
        one = read_run(shutil.copy(path, tmp_path / path.stem))
        alone |= {path.name: one} if one.series else {}
    (place,) = runs_in(together, [])
    found = {run.path: run for run in runs_of(place)}
    assert found.keys() == alone.keys()
    for name, run in found.items():
        assert run.series.keys() == alone[name].series.keys(), name
        assert (run.records, run.kind, run.ending) == (alone[name].records, alone[name].kind, alone[name].ending), name
        assert run.config == alone[name].config, name


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
