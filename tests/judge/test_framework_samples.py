"""Runs that frameworks really made and that went well: no alarm, in whatever format they are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp.judge import diagnose_run
from mldebug_mcp.models import State

SAMPLES = Path(__file__).parent.parent / "logs" / "samples"
HEALTHY = (
    *(f"trainer/{run}/{file}" for run in ("plain", "evaluated", "accumulated", "resumed")
      for file in ("trainer_state.json", "log_history.csv", "stdout.log")),
    "keras/training.csv", "keras/bars.log", "keras/lines.log", "keras/appended.csv",
    "lightning/metrics.csv", "lightning/stdout.log", "lightning/rich.log", "fastai/history.csv", "fastai/stdout.log",
    "mmengine/scalars.json", "mmengine/run.log", "mmengine/stdout.log", "timm/summary.csv", "ultralytics/results.csv",
    "stable_baselines3/ppo/progress.csv", "stable_baselines3/ppo/progress.json", "stable_baselines3/ppo/stdout.log",
    "stable_baselines3/ppo/0.monitor.csv", "accelerate/events.out.tfevents.sample",
)  # fmt: skip
TRL = tuple(
    f"trl/{run}/{file}"
    for run in ("sft", "dpo", "kto", "reward", "grpo", "rloo")
    for file in ("trainer_state.json", "stdout.log")
)


@pytest.mark.parametrize("sample", HEALTHY)
def test_a_run_that_went_well_is_called_healthy(sample: str) -> None:
    diagnosis = diagnose_run(SAMPLES / sample)
    assert [finding.summary for finding in diagnosis.findings if finding.state is State.PRESENT] == []
    assert diagnosis.hypotheses[0].cause == "healthy"


@pytest.mark.parametrize("sample", TRL)
def test_a_tiny_model_that_learns_alarms_by_nothing_but_its_settings(sample: str) -> None:
    # Two layers made from scratch need a rate far above what is usual for tuning a language model, and GRPO and RLOO
    # were given eight tokens for an answer that the model has not learnt to end.
    present = {one.symptom for one in diagnose_run(SAMPLES / sample).findings if one.state is State.PRESENT}
    assert present <= {"lr_high", "completions_truncated"}


def test_a_loss_that_was_really_summed_over_micro_batches_is_found() -> None:
    diagnosis = diagnose_run(SAMPLES / "trainer" / "summed")
    present = {one.symptom for one in diagnosis.findings if one.state is State.PRESENT}
    assert "loss_scale_suspicious" in present
    assert diagnosis.hypotheses[0].cause == "grad_accum_scaling"
