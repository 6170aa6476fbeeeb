"""Sudden moves of any curve: where they begin, how large they are, and which curve moved first."""

from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.checks.course import events_of
from tests.runs import run_of

STEPS = 400


def noisy(level: float, seed: int = 0) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return level + np.random.default_rng(seed).normal(0, 0.02 * level, STEPS)


@pytest.mark.parametrize("seed", range(10))
def test_noise_about_a_falling_curve_has_no_events(seed: int) -> None:
    falling = 2 * np.exp(-np.arange(STEPS) / 80) + noisy(1.0, seed)
    assert events_of(run_of(loss=falling), ["loss"]) == []


def test_a_jump_is_told_with_its_step_height_and_return() -> None:
    loss = noisy(2.0)
    loss[250:254] += 3
    (event,) = events_of(run_of(loss=loss), ["loss"])
    (change,) = event.changes
    assert change.step == 251
    assert change.before == pytest.approx(2, abs=0.1)
    assert change.there == pytest.approx(5, abs=0.2)
    assert change.back == 255


def test_a_level_of_the_first_record_alone_is_no_event_later_on() -> None:
    assert events_of(run_of(startup=[250.0, *[0.5] * 9]), ["startup"]) == []


def test_what_moves_shortly_before_is_the_first_mover() -> None:
    loss, norm = noisy(2.0), noisy(1.0, 1)
    norm[248:255] += 4
    loss[250:254] += 3
    (event,) = events_of(run_of(loss=loss, grad_norm=norm), ["loss", "grad_norm"])
    assert event.first_mover == "grad_norm"
    assert event.step == 249


def test_a_learning_rate_that_is_cut_is_an_event_and_a_smooth_schedule_is_none() -> None:
    smooth = 1e-3 * (1 + np.cos(np.linspace(0, np.pi, STEPS))) / 2
    cut = np.where(np.arange(STEPS) < 200, 1e-3, 1e-4)
    assert events_of(run_of(learning_rate=smooth), ["learning_rate"]) == []
    (event,) = events_of(run_of(learning_rate=cut), ["learning_rate"])
    assert (event.step, event.changes[0].there) == (201, 1e-4)


def test_a_spike_of_one_record_in_a_hundred_thousand_is_found() -> None:
    loss = np.random.default_rng(0).normal(2, 0.02, 100_000)
    loss[77_777] = 9.0
    (event,) = events_of(run_of(loss=loss), ["loss"])
    assert event.step == 77_778
