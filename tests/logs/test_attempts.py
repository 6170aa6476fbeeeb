"""Several starts of a program in one log: each is an attempt, and the last one that got anywhere is judged."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import PATIENCE
from tests.logs.reading import read

from mldebug_mcp import diagnose_run
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs import Run, read_run
from mldebug_mcp.models import State

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
TRACE = f'Traceback (most recent call last):\n  File "train.py", line 40, in <module>\n    loss.backward()\n{OOM}\n'


def head(batch: int, rate: float = 0.001) -> str:
    return (
        "nohup: ignoring input\nUsing device: cuda:0\nLoading the dataset from disk\n"
        f"Namespace(batch_size={batch}, learning_rate={rate}, epochs=3, seed=1, workers=2, weight_decay=0.1)\n"
        "Model has 12345678 parameters\n"
    )


def steps(first: int, last: int, *, every: int = 10, begun: int = 0, top: float = 4.0) -> str:
    return "".join(
        f"step {step}: loss {top - 2.0 * (step - begun) / (step - begun + 300):.4f}\n"
        for step in range(first, last + 1, every)
    )


THREE = head(64) + steps(10, 30) + TRACE + head(32) + steps(10, 60) + TRACE + head(8) + steps(10, 900)


def test_a_log_with_three_attempts_is_judged_by_the_last_one(tmp_path: Path) -> None:
    run = read(tmp_path, THREE)
    assert [(one.first_step, one.last_step, one.records) for one in run.attempts] == [
        (10, 30, 3), (10, 60, 6), (10, 900, 90),
    ]  # fmt: skip
    assert [one.ending.how for one in run.attempts] == ["error", "error", "open"]
    assert [one.judged for one in run.attempts] == [False, False, True]
    assert (run.records, len(run["loss"]), len(run.segments)) == (90, 90, 1)
    assert OOM in run.attempts[0].ending.text
    assert any("the log holds 3 attempts" in note and "CUDA out of memory" in note for note in run.notes)


def test_an_error_of_an_earlier_attempt_does_not_condemn_the_one_that_follows(tmp_path: Path) -> None:
    run = read(tmp_path, THREE)
    assert run.messages == ()
    diagnosis = diagnose_run(tmp_path / "train.log")
    assert diagnosis.hypotheses[0].cause == "healthy"
    assert not [one for one in diagnosis.findings if one.state is State.PRESENT and "error" in one.symptom]


def test_an_attempt_has_the_settings_that_it_printed_itself(tmp_path: Path) -> None:
    run = read(tmp_path, head(64, 0.1) + steps(10, 300) + TRACE + head(8, 0.01) + steps(10, 300))
    assert run.setting("learning_rate") == 0.01


def test_an_error_of_the_last_attempt_ends_the_run(tmp_path: Path) -> None:
    run = read(tmp_path, head(8) + steps(10, 200) + "KeyboardInterrupt\n" + head(64) + steps(10, 400) + TRACE)
    assert [one.ending.how for one in run.attempts] == ["interrupted", "error"]
    assert (run.ending.how, run.ending.text) == ("error", OOM)
    assert [message.text for message in run.fatal][-1] == OOM


def test_a_stub_behind_a_long_run_is_told_and_the_long_run_is_judged(tmp_path: Path) -> None:
    run = read(tmp_path, head(8) + steps(10, 900) + "Training finished.\n" + head(64) + steps(10, 20) + TRACE)
    assert [one.records for one in run.attempts] == [90, 2]
    assert run.records == 90
    assert any("number 1, the last that got anywhere, is judged" in note and OOM[:40] in note for note in run.notes)


def test_a_crash_at_the_start_behind_a_run_is_an_attempt_without_records(tmp_path: Path) -> None:
    run = read(tmp_path, head(8) + steps(10, 900) + head(64) + TRACE)
    assert [(one.records, one.ending.how) for one in run.attempts] == [(90, "open"), (0, "error")]
    assert run.fatal == ()
    assert any("2: no record, ended in an error" in note for note in run.notes)


def test_crashes_before_the_first_record_are_attempts_too(tmp_path: Path) -> None:
    run = read(tmp_path, head(256) + TRACE + head(128) + TRACE + head(8) + steps(10, 500))
    assert [(one.records, one.ending.how) for one in run.attempts] == [(0, "error"), (0, "error"), (50, "open")]
    assert run.messages == ()


def test_an_attempt_that_died_after_its_first_record_is_told_apart(tmp_path: Path) -> None:
    run = read(tmp_path, head(64) + steps(10, 10) + TRACE + head(8) + steps(10, 300))
    assert [one.records for one in run.attempts] == [1, 30]


def test_a_resume_with_a_message_is_one_attempt_and_told_with_its_step(tmp_path: Path) -> None:
    text = head(8) + steps(10, 300) + head(8) + "Resuming from checkpoint at step 250\n" + steps(260, 600)
    run = read(tmp_path, text)
    assert len(run.attempts) == 1
    assert [segment.first_step for segment in run.segments] == [10, 260]
    assert run.resumes == (260,)


@pytest.mark.parametrize(
    "line", ["# Restored model, optimizer and scheduler from ckpt-30", "restored model and optimizer from epoch 18"]
)
def test_an_optimizer_that_is_restored_from_somewhere_tells_of_a_resume(line: str, tmp_path: Path) -> None:
    run = read(tmp_path, head(8) + steps(10, 300) + f"{line}\n" + steps(310, 600))
    assert run.resumes == (310,)


def test_a_counter_that_goes_on_where_a_checkpoint_was_is_a_resume_without_a_word(tmp_path: Path) -> None:
    run = read(tmp_path, head(8) + steps(10, 300) + TRACE + head(8) + steps(210, 600))
    assert len(run.attempts) == 1
    assert [segment.first_step for segment in run.segments] == [10, 210]
    assert run.fatal == ()


def test_a_counter_that_goes_on_behind_the_same_head_is_a_resume(tmp_path: Path) -> None:
    run = read(tmp_path, head(8) + steps(10, 300) + head(8) + steps(310, 600))
    assert (len(run.attempts), len(run["loss"])) == (1, 60)


def test_jobs_that_a_scheduler_put_back_are_attempts(tmp_path: Path) -> None:
    stopped = "slurmstepd: error: *** JOB 812 ON n7 CANCELLED AT 2025-03-01T10:00:00 DUE TO PREEMPTION ***\n"
    banner = "SLURM_JOB_ID=812 SLURM_RESTART_COUNT={}\nHost n7 starts at 2025-03-01\nRunning srun python train.py\n"
    run = read(tmp_path, banner.format(0) + steps(10, 500) + stopped + banner.format(1) + steps(10, 700))
    assert [one.ending.how for one in run.attempts] == ["interrupted", "open"]
    assert run.last_step == 700


def test_workers_that_torchrun_starts_again_are_attempts(tmp_path: Path) -> None:
    elastic = (
        "W0301 torch/distributed/run.py:793] Setting OMP_NUM_THREADS for each process\n"
        "[default0]:Initialised the process group, world size 8\n[default0]:Building the model of 24 layers\n"
    )
    failed = "[default0]:RuntimeError: NCCL error: unhandled system error\nWorker group failed, restarting\n"
    log = [f"[default0]:step {step}: loss {3 - step / 1000}\n" for step in range(10, 400, 10)]
    run = read(tmp_path, elastic + "".join(log[:20]) + failed + elastic + "".join(log))
    assert [one.records for one in run.attempts] == [20, 39]
    assert run.messages == ()


def test_runs_appended_to_a_table_of_records_are_attempts_if_the_loss_begins_anew(tmp_path: Path) -> None:
    one = [{"step": step, "loss": 4.0 - 2.0 * step / (step + 300)} for step in range(10, 300, 10)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in one * 3))
    assert [attempt.records for attempt in read_run(tmp_path / "log.jsonl").attempts] == [29, 29, 29]


def test_a_counter_that_starts_again_while_the_loss_goes_on_counts_passes(tmp_path: Path) -> None:
    rows = [{"step": 1 + at % 40, "loss": 4.0 - 2.0 * at / (at + 60)} for at in range(160)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = read_run(tmp_path / "log.jsonl")
    assert len(run.attempts) == 1
    assert run["loss"].step.tolist() == list(range(1, 161))
    assert any("while the loss goes on: steps are counted on" in note for note in run.notes)


def in_blocks(size: int, losses: list[float]) -> str:
    return "".join(json.dumps({"step": at % size, "loss": round(loss, 4)}) + "\n" for at, loss in enumerate(losses))


def noisy(at: int, spread: float) -> float:
    return spread * math.sin(7.3 * at * at)


@pytest.mark.parametrize(("size", "spread"), [(2, 0.02), (4, 0.02), (10, 0.1), (50, 0.15)])
def test_a_counter_that_begins_anew_in_each_block_counts_on_where_the_loss_goes_on(
    tmp_path: Path, size: int, spread: float
) -> None:
    losses = [0.3 + 2.1 * math.exp(-at / 90) + noisy(at, spread) for at in range(230)]
    run = read(tmp_path, in_blocks(size, losses), "log.jsonl")
    assert (len(run.attempts), run["loss"].step.tolist()) == (1, list(range(230)))


@pytest.mark.parametrize("size", [8, 10, 50])
def test_equal_attempts_stay_apart_where_the_loss_begins_anew(tmp_path: Path, size: int) -> None:
    losses = [0.3 + 2.1 * math.exp(-(at % size) / 4) + noisy(at, 0.02) for at in range(4 * size)]
    assert len(read(tmp_path, in_blocks(size, losses), "log.jsonl").attempts) == 4


def test_equal_attempts_of_a_rising_learning_rate_stay_apart_though_each_begins_lower(tmp_path: Path) -> None:
    losses = [0.3 + 2 * math.exp(-0.01 * rate * at) for rate in (1, 4, 16, 64) for at in range(3, 13)]
    assert len(read(tmp_path, in_blocks(10, losses), "log.jsonl").attempts) == 4


def test_attempts_that_come_down_within_their_first_records_stay_apart(tmp_path: Path) -> None:
    losses = [0.3 + 2 * math.exp(-rate * at) for rate in (0.05, *[2] * 13) for at in range(12)]
    assert len(read(tmp_path, in_blocks(12, losses), "log.jsonl").attempts) == 14


def test_a_start_among_blocks_that_go_on_is_an_attempt(tmp_path: Path) -> None:
    losses = [0.3 + 2.1 * math.exp(-at / 60) + noisy(at, 0.02) for at in [*range(100), *range(140)]]
    run = read(tmp_path, in_blocks(10, losses), "log.jsonl")
    assert [attempt.records for attempt in run.attempts] == [100, 140]
    assert run["loss"].step.tolist() == list(range(140))


def test_a_header_in_each_epoch_is_no_start(tmp_path: Path) -> None:
    epoch = "Training one epoch now\nShuffling the data set\nUsing four workers\n"
    run = read(tmp_path, "".join(f"{epoch}epoch {at} loss {3 - at / 10:.2f}\n" for at in range(1, 20)))
    assert (len(run.attempts), len(run["loss"])) == (1, 19)


LOOP = """
import sys
print("Python", sys.version.split()[0]); print("arguments: batch", sys.argv[1]); print("building a model of 3 layers")
value = 1.0
for step in range(1, 41):
    value -= 0.1 * (2 * value - 0.5)
    if step == 8 and sys.argv[1] == "64":
        raise MemoryError("batch too large")
    print(f"step={step} loss={value * value + 0.3:.5f}")
print("Training complete.")
"""


def test_the_output_of_a_program_that_was_started_three_times_is_read_by_its_last_start(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    with log.open("a") as file:
        for batch in ("64", "64", "8"):
            subprocess.run(
                [sys.executable, "-c", LOOP, batch],
                stdout=file,
                stderr=subprocess.STDOUT,
                check=False,
                timeout=PATIENCE,
            )
    run = read_run(log)
    assert [one.records for one in run.attempts] == [7, 7, 40]
    assert [one.ending.how for one in run.attempts] == ["error", "error", "finished"]
    assert run.fatal == ()


RETRY = (
    "2025-03-01 10:00:00 WARNING urllib3.connectionpool Retrying (Retry(total=2, connect=None)) after connection broken"
    " by 'NewConnectionError: [Errno 111] Connection refused': /api/telemetry\n"
)


@pytest.mark.parametrize(
    "line",
    [
        RETRY,
        "wandb: WARNING Network error (ConnectionError: refused), entering retry loop.\n",
        "ConnectionError: host not reached, retrying in 5 s (attempt 2 of 5)\n",
        "UserWarning: NCCL error: blocking wait is deprecated\n",
    ],
)
def test_a_retry_or_a_warning_at_the_end_of_a_log_is_no_failure(tmp_path: Path, line: str) -> None:
    run = read(tmp_path, steps(10, 900) + line)
    assert run.fatal == ()
    diagnosis = diagnose_run(tmp_path / "train.log")
    assert diagnosis.hypotheses[0].cause == "healthy"
    assert next(one.probability for one in diagnosis.hypotheses if one.cause == "unknown") < 0.3


def test_an_error_after_the_end_of_training_did_not_end_it(tmp_path: Path) -> None:
    run = read(tmp_path, steps(10, 900) + "Training completed.\nRuntimeError: the writer is closed\n")
    assert (run.ending.how, run.fatal) == ("finished", ())


def _ending(folder: Path, text: str) -> str:
    return read(folder, text).ending.how


def test_the_ending_of_a_log_is_told(tmp_path: Path) -> None:
    assert _ending(tmp_path, steps(10, 300)) == "open"
    assert _ending(tmp_path, steps(10, 300) + "`Trainer.fit` stopped: `max_epochs=3` reached.\n") == "finished"
    stopped = "Validation score did not improve more than tol=0.000100 for 10 consecutive epochs. Stopping.\n"
    assert _ending(tmp_path, steps(10, 300) + stopped) == "finished"
    assert _ending(tmp_path, steps(10, 300) + "step 310: lo") == "cut"
    assert (
        _ending(tmp_path, steps(10, 300) + "Traceback (most recent call last):\nKeyboardInterrupt\n") == "interrupted"
    )
    assert _ending(tmp_path, steps(10, 300) + TRACE) == "error"


def test_a_log_that_reaches_its_plan_is_finished(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"max_steps": 300, "learning_rate": 0.001}')
    run: Run = read(tmp_path, steps(10, 300))
    assert run.ending.how == "finished"
    assert read(tmp_path, steps(10, 200)).ending.how == "open"


def test_a_clock_that_runs_on_without_records_is_a_silence(tmp_path: Path) -> None:
    records = "".join(f"2025-03-01 10:{at:02d}:00 step {at}: loss {3 - at / 50}\n" for at in range(1, 31))
    beats = "".join(f"2025-03-01 {hour}:00:00 heartbeat of rank 3\n" for hour in range(11, 15))
    silent = read(tmp_path, records + beats)
    assert (silent.ending.how, "16200 s behind the last record" in silent.ending.text) == ("silence", False)
    assert _ending(tmp_path, records + "2025-03-01 10:31:00 saving a checkpoint\n") == "open"


@pytest.mark.parametrize("name", ["attempt 2", "attempt-2", "Attempt 2"])
def test_an_earlier_attempt_is_judged_alone_where_it_is_asked_for(tmp_path: Path, name: str) -> None:
    read(tmp_path, THREE)
    for path in (tmp_path / "train.log", tmp_path):
        run = read_run(path, run=name)
        assert (run.records, run["loss"].step[-1], run.settings["per_device_train_batch_size"].value) == (6, 60, 32)
        assert [one.judged for one in run.attempts] == [False, True, False]
        assert any(OOM in one.text for one in run.messages)
        assert run.notes[0].startswith(
            "the log holds 3 attempts, each from its start; attempt 2, as asked for, is judged"
        )
    assert diagnose_run(tmp_path / "train.log", run=name).hypotheses[0].cause == "out_of_memory"


def test_an_answer_says_how_another_attempt_is_asked_for(tmp_path: Path) -> None:
    assert any("--run 'attempt N'" in note for note in read(tmp_path, THREE).notes)


def test_an_attempt_that_the_log_does_not_hold_is_refused_with_those_there_are(tmp_path: Path) -> None:
    read(tmp_path, THREE)
    with pytest.raises(InputError, match=r"train\.log: no attempt 4; the log holds attempt 1 to attempt 3"):
        read_run(tmp_path / "train.log", run="attempt 4")
    with pytest.raises(InputError, match="attempt 4"):
        read_run(tmp_path, run="attempt 4")
