"""`end_of_log`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from mldebug_mcp import diagnose_run
from mldebug_mcp.logs import Run, read_run
from mldebug_mcp.logs.kinds import concluded
from mldebug_mcp.logs.run import Ending
from mldebug_mcp.models import State
from tests.runs import run_of, seen, state

HALF = [1.0] * 50


def test_a_log_that_ends_halfway_is_present() -> None:
    finding = seen("log_stops", run_of(loss=HALF, every=10, config={"max_steps": 1000}))
    assert finding.state is State.PRESENT
    assert finding.steps == [500]
    assert finding.values["share"] == 0.5


def test_epochs_of_which_only_a_few_were_logged_are_present() -> None:
    run = run_of(loss=HALF, epoch=[0.02 * i for i in range(50)], config={"num_train_epochs": 3})
    assert state("log_stops", run) is State.PRESENT


def test_a_total_in_each_record_is_the_plan() -> None:
    assert state("log_stops", run_of(loss=HALF, total_steps=[200.0] * 50)) is State.PRESENT


def test_a_last_logging_interval_that_is_missing_is_absent() -> None:
    assert state("log_stops", run_of(loss=HALF, every=10, config={"max_steps": 509})) is State.ABSENT


def test_epochs_counted_from_zero_are_complete() -> None:
    run = run_of(loss=HALF, epoch=[float(i // 5) for i in range(50)], config={"num_train_epochs": 10})
    assert state("log_stops", run) is State.ABSENT


def test_early_stopping_is_a_remark() -> None:
    finding = seen("log_stops", run_of(loss=HALF, config={"max_steps": 1000, "early_stopping_patience": 3}))
    assert finding.state is State.ABSENT
    assert "early stopping" in finding.summary


def test_a_closing_record_is_a_remark() -> None:
    run = run_of({"loss": HALF, "summary/train_runtime": {50: 30.0}}, config={"max_steps": 1000})
    assert state("log_stops", run) is State.ABSENT


def test_the_state_of_a_checkpoint_is_unknown() -> None:
    run = replace(run_of(loss=HALF, config={"max_steps": 1000}), formats=("hf_trainer_state",))
    assert state("log_stops", run) is State.UNKNOWN


def test_no_plan_or_one_in_another_unit_is_unknown() -> None:
    assert state("log_stops", run_of(loss=HALF)) is State.UNKNOWN
    assert state("log_stops", run_of(loss=HALF, every=100, config={"max_steps": 50})) is State.UNKNOWN


def test_a_run_that_may_still_be_going_is_not_called_broken(tmp_path: Path) -> None:
    log = tmp_path / "trainer_log.jsonl"
    lines = (f'{{"current_steps": {step}, "total_steps": 1000, "loss": {2 - step / 100:.3f}}}' for step in range(1, 70))
    log.write_text("\n".join(lines), encoding="utf-8")
    diagnosis = diagnose_run(log)
    assert {one.symptom: one.state for one in diagnosis.findings}["log_stops"] is State.PRESENT
    assert diagnosis.hypotheses[0].cause == "healthy"


def stamped(folder: Path, quiet: int, last: str = "", every: int = 10) -> Run:
    """Return a run whose lines have times; after its records the heartbeat goes on for `quiet` seconds."""
    start = datetime(2024, 5, 1, 10, 0, 0)
    lines = [f"{start + timedelta(seconds=every * at)} step {at}: loss {2 - at / 100:.4f}" for at in range(1, 60)]
    beats = range(0, quiet + 1, 60)
    lines += [f"{start + timedelta(seconds=every * 60 + beat)} heartbeat: workers alive" for beat in beats]
    lines += [last] * bool(last)
    (folder / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_run(folder / "train.log")


def test_a_clock_that_runs_on_without_records_is_silence(tmp_path: Path) -> None:
    finding = seen("log_falls_silent", stamped(tmp_path, 1800))
    assert finding.state is State.PRESENT
    assert finding.steps == [59]


def test_the_time_of_an_evaluation_is_no_silence(tmp_path: Path) -> None:
    assert state("log_falls_silent", stamped(tmp_path, 240)) is State.ABSENT


@pytest.mark.parametrize(("beat", "is_silent"), [
    ("INFO heartbeat: step=59 prefetch=0/8 rss=285MB", True), ("watchdog | last iteration 59, loss 1.41, alive", True),
    ("[monitor] batch 59: queue empty", True), ("INFO evaluating: {0} of 40 batches behind step 59", False),
])  # fmt: skip
def test_lines_that_say_the_same_each_time_are_of_a_run_that_stands_still(
    beat: str, is_silent: bool, tmp_path: Path
) -> None:
    start = datetime(2024, 5, 1, 10, 0, 0, 250000)
    lines = [f"{start + timedelta(seconds=3 * at)} step {at}: loss {2 - at / 100:.4f}" for at in range(1, 60)]
    lines += [f"{start + timedelta(seconds=200 + 50 * at)} {beat.format(at)}" for at in range(4)]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert (diagnose_run(tmp_path / "train.log").leader == "hang") is is_silent


def test_records_that_come_every_few_minutes_make_no_silence_of_half_an_hour(tmp_path: Path) -> None:
    assert state("log_falls_silent", stamped(tmp_path, 1800, every=240)) is State.ABSENT


def test_a_run_that_says_that_it_is_done_is_not_silent(tmp_path: Path) -> None:
    assert state("log_falls_silent", stamped(tmp_path, 1800, "Training completed.")) is State.ABSENT


def test_an_interrupted_run_is_not_silent(tmp_path: Path) -> None:
    assert state("log_falls_silent", stamped(tmp_path, 1800, "KeyboardInterrupt")) is State.ABSENT


@pytest.mark.parametrize("beats", [True, False])
def test_a_run_that_stands_still_until_its_time_is_over_hangs(tmp_path: Path, beats: bool) -> None:
    over = "[2024-05-01 11:15:01] slurmstepd: error: *** STEP 991.0 ON node12 CANCELLED AT now DUE TO TIME LIMIT ***"
    stamped(tmp_path, 1800 if beats else 0, over)
    diagnosis = diagnose_run(tmp_path / "train.log")
    assert diagnosis.leader == "hang"
    assert "DUE TO TIME LIMIT" in next(f.summary for f in diagnosis.findings if f.symptom == "log_falls_silent")


def test_a_run_whose_time_is_over_while_it_trains_does_not(tmp_path: Path) -> None:
    over = "[2024-05-01 10:10:11] slurmstepd: error: *** STEP 991.0 ON node12 CANCELLED AT now DUE TO TIME LIMIT ***"
    stamped(tmp_path, 0, over)
    assert diagnose_run(tmp_path / "train.log").leader == "healthy"


def test_a_plan_that_was_reached_is_not_silence() -> None:
    silent = Ending("silence", "its clock runs on for 900 s behind the last record")
    run = concluded(replace(run_of(loss=HALF, config={"max_steps": 50}), ending=silent))
    assert state("log_falls_silent", run) is State.ABSENT


def test_a_log_that_just_ends_is_not_silent() -> None:
    assert state("log_falls_silent", run_of(loss=HALF, config={"max_steps": 1000})) is State.UNKNOWN
    assert state("log_stops", run_of(loss=HALF, config={"max_steps": 1000})) is State.PRESENT


def test_steps_that_take_far_longer_than_any_before_just_before_the_log_ends_are_told() -> None:
    seconds = [0.006] * 45 + [2.0] * 3 + [0.02] * 2
    finding = seen("last_steps_slow", run_of(loss=HALF, step_time=seconds, config={"max_steps": 200}))
    assert finding.state is State.PRESENT
    assert finding.steps == [46]


def test_a_slow_last_step_of_which_there_were_others_before_is_absent() -> None:
    seconds = ([0.006] * 9 + [2.0]) * 5
    assert state("last_steps_slow", run_of(loss=HALF, step_time=seconds, config={"max_steps": 200})) is State.ABSENT


def test_slow_last_steps_of_a_run_that_reached_its_plan_are_not_judged() -> None:
    seconds = [0.006] * 47 + [2.0] * 3
    assert state("last_steps_slow", run_of(loss=HALF, step_time=seconds, config={"max_steps": 50})) is State.UNKNOWN


@pytest.mark.parametrize(
    ("first", "last", "ends"),
    [(1, 10, "open"), (1, 11, "open"), (1, 12, "finished"), (0, 10, "open"), (0, 11, "finished")],
)
def test_a_run_is_finished_at_the_last_planned_epoch_and_not_before(
    first: int, last: int, ends: str, tmp_path: Path
) -> None:
    lines = (
        f"Epoch {at} | train loss {2 / (at + 1):.4f} | val loss {2.1 / (at + 1):.4f}\n" for at in range(first, last + 1)
    )
    (tmp_path / "train.log").write_text("config: lr=0.001 batch=64 epochs=12 optimizer=Adam\n" + "".join(lines))
    run = read_run(tmp_path / "train.log")
    assert run.ending.how == ends
    stops = seen("log_stops", run)
    assert stops.state is (State.PRESENT if ends == "open" else State.ABSENT)
    share = f"{last / 12:.0%}"
    assert (f"the log stops at {share} of the plan, epoch {last} of 12" in stops.summary) is (ends == "open")


@pytest.mark.parametrize(("every", "first", "done"), [(500, 0, True), (500, 500, False), (300, 300, True)])
def test_steps_are_done_where_the_next_record_lies_beyond_the_plan(every: int, first: int, done: bool) -> None:
    run = run_of(loss=dict.fromkeys(range(first, 10_000, every), 1.0), config={"max_steps": 10_000})
    assert (state("log_stops", run) is State.ABSENT) is done
