"""A probe that runs out of time: that says nothing of the rate, and the next call gives it more."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from mldebug_mcp.judge.probe import interpret, probe_overfit
from mldebug_mcp.probe import Measured
from mldebug_mcp.probe.host import RawProbe

from .test_batches import ROWS


@pytest.mark.parametrize("losses", [[8.0 - 0.08 * step for step in range(90)], [8.0, 7.9]])
def test_time_that_is_up_is_not_blamed_on_the_rate_that_the_probe_chose(losses: list[float]) -> None:
    seen = {"initial_loss": 8.0, "goal": 0.4, "memorised": False, "targets": "tokens"}
    states = {}
    for ended, rate in (("time", 0.03), ("steps", 0.03), ("time", None)):
        curve = {"losses": losses, "ended": ended, "learning_rate": rate}
        result = interpret(RawProbe(measured=Measured.model_validate(seen | {"curve": curve})))
        found = {one.symptom: one.state for one in result.findings}
        states[ended, rate] = found["probe_not_memorised"]
    assert states == {("time", 0.03): "unknown", ("steps", 0.03): "present", ("time", None): "present"}


def test_a_random_loss_is_not_called_unlearnable_where_time_was_up_before_its_draws_were_repeated() -> None:
    seen = {
        "initial_loss": 1.0,
        "memorised": False,
        "repeated_losses": [1.0, 0.9, 1.1, 0.95],
        "replayed_losses": [1.0, 1.0],
        "loss_rounding": 1e-7,
        "gradients": {"norm": 1.0, "trainable": 4},
        "curve": {"losses": [1.0, 0.95] * 60, "ended": "time", "learning_rate": 0.01},
    }

    result = interpret(RawProbe(measured=Measured.model_validate(seen)))

    assert result.verdict == "too_slow"
    assert "time was up" in result.summary
    assert result.causes[0].cause == "unknown"


def test_only_a_batch_that_is_memorised_can_be_healthy() -> None:
    for ended, losses in (("time", [4.0] * 90), ("steps", [4.0] * 90), ("time", [8.0, 7.0]), ("time", [4.0, 4.0])):
        curve = {"losses": losses, "ended": ended, "learning_rate": 0.01}
        seen = {"initial_loss": 4.0, "goal": 0.2, "memorised": False, "curve": curve}

        result = interpret(RawProbe(measured=Measured.model_validate(seen)))

        assert result.verdict != "memorised"
        assert "healthy" not in [one.cause for one in result.causes]


def test_the_next_call_gives_more_time(tmp_path: Path) -> None:
    path = tmp_path / "batch.json"
    path.write_text(json.dumps({"input_ids": ROWS, "labels": ROWS}))

    answer = probe_overfit(path, time_limit=1, steps=5000)

    assert answer.verdict in ("failed", "too_slow")
    assert answer.next_step is not None
    assert answer.next_step.tool == "probe_overfit"
    assert answer.next_step.arguments == {"batch": str(path), "steps": 5000, "time_limit": 4.0}


def test_time_that_is_up_is_told_whatever_the_worker_does_next(tmp_path: Path) -> None:
    path = tmp_path / "batch.json"
    path.write_text(json.dumps({"input_ids": ROWS, "labels": ROWS}))
    worker = tmp_path / "python"
    stacks = "head -c 40000 /dev/zero | tr '\\0' x >&2"
    result = '{"stage": "training", "done": false, "failure": null, "measured": {}, "notes": []}'
    worker.write_text(f"#!/bin/sh\necho '{result}' > $3\necho 'Timeout (0:00:01)!' >&2\n{stacks}\nkill -SEGV $$\n")
    worker.chmod(0o755)

    answer = probe_overfit(path, python=worker, time_limit=1)

    assert answer.summary.startswith("the time limit was reached")
    assert answer.next_step is not None
    assert answer.next_step.tool == "probe_overfit"


def test_a_slow_start_is_not_counted_as_work_on_the_batch(tmp_path: Path) -> None:
    path = tmp_path / "batch.json"
    path.write_text(json.dumps({"input_ids": ROWS, "labels": ROWS}))
    slow = tmp_path / "python"
    slow.write_text(f'#!/bin/sh\nsleep 4\nexec {sys.executable} "$@"\n')
    slow.chmod(0o755)

    answer = probe_overfit(path, python=slow, time_limit=1.5)

    assert answer.stage not in ("", "start", "import torch")
    assert answer.seconds > 4
