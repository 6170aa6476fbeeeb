from __future__ import annotations

import math
import threading
from pathlib import Path

import pytest

from mldebug_mcp.recorder import Alarm, Recorder
from mldebug_mcp.recorder.alarm import Looks, look
from tests.conftest import PATIENCE


def found(cause: str) -> Alarm:
    return Alarm(cause, 0.8, ("loss_spike",), Path("run"))


def looks(monkeypatch: pytest.MonkeyPatch, causes: list[str]) -> list[str]:
    """Return the causes of the alarms after looks that find these, one after another."""
    told: list[str] = []
    left, over = list(causes), threading.Event()

    def next_look(_path: Path) -> Alarm | None:
        if not left:
            over.set()
            return None
        return found(left.pop(0))

    monkeypatch.setattr("mldebug_mcp.recorder.alarm.look", next_look)
    watching = Looks(Path("run"), 0.01, lambda alarm: told.append(alarm.cause))
    assert over.wait(PATIENCE)
    watching.stop()
    return told


def test_a_cause_is_told_once_it_leads_at_two_looks_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    causes = [
        "healthy",
        "healthy",
        "bad_batch",
        "healthy",
        "lr_too_high",
        "lr_too_high",
        "lr_too_high",
        "unknown",
        "unknown",
    ]
    assert looks(monkeypatch, causes) == ["lr_too_high"]


def test_a_look_diagnoses_the_recording_in_a_process_of_its_own(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        for step in range(1, 200):
            recorder.put(step, {"loss": math.nan if step > 100 else 2 / math.sqrt(step), "learning_rate": 1e-3})
    seen = look(tmp_path)
    assert seen is not None
    assert seen.cause not in ("healthy", "unknown")
    assert any(one.startswith("loss_nonfinite") for one in seen.because)
    assert seen.cause in str(seen)


def test_a_recording_without_a_step_raises_no_alarm(tmp_path: Path) -> None:
    Recorder(tmp_path).close()
    assert look(tmp_path) is None
