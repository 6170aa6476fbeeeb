"""What a reader of a log and its configuration sees at once is seen by a diagnosis too, however it is written."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mldebug_mcp import diagnose_run
from mldebug_mcp.logs import read_run
from mldebug_mcp.models import Diagnosis, State

STEPS = 240
VOCABULARY = {"task": "language_modelling", "vocab_size": 512, "block_size": 64}


def loss(step: int) -> float:
    """Return a loss that falls as that of a small language model does."""
    return 2.0 + 4.2 * math.pow(1 + step / 20, -0.7) + random.Random(step).gauss(0, 0.02)


def run_folder(
    folder: Path, extra: Callable[[int], Mapping[str, float]], config: Mapping[str, object], steps: int = STEPS
) -> Path:
    """Write a log of JSON lines, and its configuration beside it."""
    records = [{"step": step, "train/loss": loss(step), **extra(step)} for step in range(1, steps + 1)]
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def is_present(answer: Diagnosis, symptom: str) -> bool:
    return any(one.symptom == symptom and one.state is State.PRESENT for one in answer.findings)


def credence(answer: Diagnosis, cause: str) -> float:
    return next(one.probability for one in answer.hypotheses if one.cause == cause)


def test_memory_of_the_process_that_climbs_is_seen_and_blamed(tmp_path: Path) -> None:
    place = run_folder(tmp_path, lambda step: {"perf/rss_mb": 562 + (2183 - 562) * step / STEPS}, VOCABULARY)
    answer = diagnose_run(place)
    assert is_present(answer, "memory_grows")
    assert answer.hypotheses[0].cause == "memory_leak"


def test_waiting_for_data_for_nine_tenths_of_each_step_is_seen_and_blamed(tmp_path: Path) -> None:
    times = lambda step: {"perf/data_time_s": 0.45 + 0.001 * (step % 5), "perf/step_time_s": 0.5}  # noqa: E731
    answer = diagnose_run(run_folder(tmp_path, times, VOCABULARY))
    assert is_present(answer, "data_wait_high")
    assert answer.hypotheses[0].cause == "dataloader_bottleneck"


def test_half_precision_that_is_switched_off_is_not_blamed_for_numbers_that_are_lost(tmp_path: Path) -> None:
    lost = lambda step: {"train/loss": float("nan")} if step > 150 else {}  # noqa: E731
    config = {**VOCABULARY, "trainer": {"fp16": False, "bf16": False}}
    answer = diagnose_run(run_folder(tmp_path, lost, config))
    assert answer.hypotheses[0].cause != "healthy"
    assert credence(answer, "fp16_overflow") < 0.1


def test_a_warm_up_longer_than_the_run_is_said(tmp_path: Path) -> None:
    rate = lambda step: {"lr": 3e-4 * step / 100_000}  # noqa: E731
    config = {**VOCABULARY, "optimizer": {"lr": 3e-4}, "schedule": {"warmup_steps": 100_000}, "max_steps": STEPS}
    answer = diagnose_run(run_folder(tmp_path, rate, config))
    assert is_present(answer, "warmup_exceeds_plan")


def test_training_and_evaluation_share_the_step_that_the_batch_counts(tmp_path: Path) -> None:
    lines = []
    for step in range(4, 441, 4):
        epoch, jump = (step - 1) // 44, 1.2 * 0.93 ** (step - 220) if step > 220 else 0.0
        if step == 224:
            lines.append("Resuming from checkpoint at step 220")
        lines.append(f"epoch {epoch} step {step}/440 loss={loss(step) + jump:.4f} lr=3.0e-04")
        if step % 44 == 0:
            lines.append(f"eval - step {step} val_loss={loss(step) + 0.05:.4f}")
    log = tmp_path / "train.log"
    log.write_text("\n".join(lines) + "\n")
    run = read_run(log)
    assert (run["loss"].step[-1], run["eval_loss"].step[-1]) == (440, 440)
    assert run.resumes == (224.0,)
    answer = diagnose_run(log)
    assert is_present(answer, "loss_jump_at_resume")
    assert answer.hypotheses[0].cause == "resume_state_lost"


@pytest.mark.parametrize(
    "config",
    [
        VOCABULARY,
        {"task": "language_modelling", "model": {"vocab_size": 512, "num_classes": 10}},
        {"experiment": {"objective": "causal_lm"}, "data": {"n_vocab": 512}},
    ],
    ids=["flat", "stray classes", "nested"],
)
def test_a_language_model_is_told_by_its_configuration(config: Mapping[str, object], tmp_path: Path) -> None:
    place = run_folder(tmp_path, lambda _: {}, config)
    assert diagnose_run(place).run.kind == "pretraining"


def log_of_attempts(folder: Path, between: str) -> Path:
    """Write a log with a first attempt that ends in some line, and a healthy one behind it."""
    head = ["Launching train.py on 1 process", "Loading the data set: 2048 rows", "Building the model with 6 layers"]
    lines = [*head, *(f"step {step} loss {loss(step):.4f}" for step in range(1, 40)), between]
    lines += [*head, *(f"step {step} loss {loss(step):.4f}" for step in range(1, STEPS + 1)), "Training completed."]
    log = folder / "train.log"
    log.write_text("\n".join(lines) + "\n")
    return log


def test_running_out_of_memory_in_an_earlier_attempt_does_not_condemn_the_one_that_follows(tmp_path: Path) -> None:
    error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    answer = diagnose_run(log_of_attempts(tmp_path, error))
    assert answer.hypotheses[0].cause == "healthy"
    assert credence(answer, "out_of_memory") < 0.05
    assert any("attempt" in note for note in answer.notes)


def test_a_retried_connection_is_no_failure(tmp_path: Path) -> None:
    retry = "WARNING urllib3.connectionpool: Retrying (Retry(total=2)) after connection broken by 'ConnectTimeoutError'"
    log = tmp_path / "train.log"
    log.write_text("\n".join([*(f"step {step} loss {loss(step):.4f}" for step in range(1, STEPS)), retry]) + "\n")
    answer = diagnose_run(log)
    assert answer.hypotheses[0].cause == "healthy"
    assert credence(answer, "unknown") < 0.2
