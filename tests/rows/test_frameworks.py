"""The rows that are drawn again are those that Transformers and Accelerate really fed, in every step of every run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mldebug_mcp import diagnose_run, rows_at
from mldebug_mcp.core.errors import InputError

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("accelerate")

ROWS = 23
ROOT = Path(__file__).parents[2]
TRAINED = ("plain", "accumulated", "dropped", "in_order", "split", "dispatched")
PREPARED: Mapping[str, Mapping[str, bool]] = {
    "shards": {},
    "halves": {"split_batches": True},
    "sent": {"dispatch_batches": True},
    "sent_halves": {"split_batches": True, "dispatch_batches": True},
}


def feed(folder: Path, ranks: int) -> Path:
    """Train everything in as many processes."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "OMP_NUM_THREADS": "1"}
    together = {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "ACCELERATE_USE_CPU": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.rows.feeding", str(folder)],
            cwd=ROOT,
            env=environment if ranks == 1 else environment | together | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for rank in range(ranks)
    ]
    said = [process.communicate()[0].decode(errors="replace") for process in processes]
    failed = [(rank, one.returncode, said[rank][-2000:]) for rank, one in enumerate(processes) if one.returncode]
    assert not failed
    return folder


@pytest.fixture(scope="module")
def one_rank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return feed(tmp_path_factory.mktemp("one"), 1)


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return feed(tmp_path_factory.mktemp("two"), 2)


def steps_fed(folder: Path) -> Iterator[tuple[int, int, list[list[int]]]]:
    """Yield a step, a rank, and the micro-batches that it was really fed; a resumed run tells its last steps alone."""
    state = folder / "trainer_state.json"
    for file in sorted(folder.glob("fed.*.json")):
        steps = json.loads(file.read_text())
        last = json.loads(state.read_text())["global_step"] if state.exists() else len(steps)
        for number, fed in enumerate(steps, last - len(steps) + 1):
            yield number, int(file.name.split(".")[1]), fed


def assert_exact(folder: Path, **options: Any) -> None:
    seen = 0
    for step, rank, fed in steps_fed(folder):
        answer = rows_at(folder, step, rows=ROWS, **options)
        assert [one.rows for one in answer.batches if one.rank == rank] == fed, (step, rank)
        seen += 1
    assert seen >= 4


@pytest.mark.parametrize("name", [*TRAINED, "resumed"])
def test_steps_of_a_trainer_on_one_rank(one_rank: Path, name: str) -> None:
    assert_exact(one_rank / name)


@pytest.mark.parametrize("name", TRAINED)
def test_steps_of_a_trainer_on_two_ranks(two_ranks: Path, name: str) -> None:
    assert_exact(two_ranks / name)


def test_a_run_that_was_resumed_with_ignore_data_skip_needs_the_step_of_its_resume(one_rank: Path) -> None:
    assert_exact(one_rank / "restarted", resumed_at=[6])
    with pytest.raises(InputError, match=r"at step 7 it has epoch 0\.125.*resumed_at"):
        rows_at(one_rank / "restarted", 9, rows=ROWS)


@pytest.mark.parametrize("name", PREPARED)
def test_steps_of_a_loader_of_accelerate(one_rank: Path, two_ranks: Path, name: str) -> None:
    for folder, world in ((one_rank, 1), (two_ranks, 2)):
        assert_exact(
            folder / name, sampler="accelerate", seed=5, batch_size=4, world=world, first_step=1, **PREPARED[name]
        )


def test_the_rows_of_a_finished_trainer_are_counted_from_its_summary(one_rank: Path) -> None:
    answer = rows_at(one_rank / "plain", 3)
    assert any(f"rows {ROWS} (samples per second" in one for one in answer.basis)
    with pytest.raises(InputError, match="the data have 23 rows, not 24"):
        rows_at(one_rank / "plain", 3, rows=24)


@pytest.mark.parametrize("wrong", [{"rows": 60}, {"world": 2}, {"batch_size": 4}, {"accumulation": 2}])
def test_settings_that_the_logged_epochs_refute_are_refused(one_rank: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="the log does not agree"):
        rows_at(one_rank / "plain", 3, **{"rows": ROWS, **wrong})


@pytest.mark.parametrize(("name", "why"), [("by_length", "lengths"), ("unseeded", "use_seedable_sampler")])
def test_orders_whose_random_numbers_were_not_kept_are_refused(one_rank: Path, name: str, why: str) -> None:
    with pytest.raises(InputError, match=f"are not known exactly: .*{why}.*record the rows"):
        rows_at(one_rank / name, 3, rows=ROWS)


def test_rows_that_came_in_the_pass_before_are_named_with_their_step(one_rank: Path) -> None:
    fed = {step: {row for batch in micro for row in batch} for step, _, micro in steps_fed(one_rank / "plain")}
    answer = rows_at(one_rank / "plain", 10, rows=ROWS)
    assert {one.row for one in answer.rows} == fed[10]
    for one in answer.rows:
        assert one.before == [step for step in range(1, 9) if one.row in fed[step]]


def test_the_diagnosis_of_a_spike_calls_for_the_rows_of_its_step(one_rank: Path, tmp_path: Path) -> None:
    bad = 16
    state = json.loads((one_rank / "plain" / "trainer_state.json").read_text())
    for number, record in enumerate(state["log_history"]):
        if "loss" in record:
            wobble, is_bad = 0.02 * (number * 7 % 5 - 2), record["step"] == bad
            record["loss"] = 2.0 - 0.01 * number + wobble + 9.0 * is_bad
            record["grad_norm"] = 1.0 + wobble + 30.0 * is_bad
    (tmp_path / "trainer_state.json").write_text(json.dumps(state))
    (tmp_path / "training_args.bin").write_bytes((one_rank / "plain" / "training_args.bin").read_bytes())
    call = diagnose_run(tmp_path).next_step
    assert call is not None
    assert (call.tool, call.arguments) == ("rows_at", {"path": str(tmp_path), "step": bad})
    fed = next(fed for step, _, fed in steps_fed(one_rank / "plain") if step == bad)
    assert [one.rows for one in rows_at(tmp_path, bad).batches] == fed
    (tmp_path / "training_args.bin").unlink()
    assert diagnose_run(tmp_path).next_step != call
