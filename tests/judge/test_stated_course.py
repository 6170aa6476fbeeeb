"""What an answer states of a curve's course is what the curve does: its peak, its way back, its level and its steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp import diagnose_run

DIVERGED = Path("examples/divergence")


def events(steps: range, loss: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[str]:
    answer = diagnose_run({"step": list(steps), "loss": loss.tolist()})
    return [f"{event.step:.0f}: {event.text}" for event in answer.sheet.events]


def test_an_event_states_the_highest_value_and_the_one_to_which_it_comes_down() -> None:
    (jump,) = [event.text for event in diagnose_run(DIVERGED).sheet.events if event.text.startswith("loss from")]
    assert jump == "loss from about 3.948 to 5697 at 105 (down to 1541 at 108)"


def test_the_events_of_a_long_log_have_the_levels_and_steps_of_its_records() -> None:
    loss = np.random.default_rng(0).normal(2, 0.1, 300_000)
    loss[140_000] = 1.45  # the lowest of its stretch, and still noise
    loss[77_777] = 55.5
    loss[200_123:] += 3
    highest = 200_123 + int(np.argmax(loss[200_123:200_150]))
    single, lasting = events(range(300_000), loss)
    assert single.startswith("77777: loss from about 2.01 to 55.5 (down to 1.934 at 77778)")
    assert float(np.median(loss[77_650:77_700])) == pytest.approx(2.01, abs=5e-4)
    assert lasting == f"200123: loss from about 1.987 to {loss[highest]:.4g} at {highest} (stays)"
    assert float(np.median(loss[199_973:200_123])) == pytest.approx(1.987, abs=5e-4)
