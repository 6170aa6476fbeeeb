from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import run_of, run_of_records, seen, state

NAME = "loss_falls_back"
DICE = np.random.default_rng(0)
NOISE = 0.05 * DICE.standard_normal(300)
CLIMB = np.concatenate([2.0 + np.arange(150) / 150, 2.0 + np.arange(150) / 150])


def test_a_loss_that_starts_its_climb_over_is_seen() -> None:
    assert state(NAME, run_of(loss=CLIMB + NOISE)) is State.PRESENT


def test_the_step_of_the_fall_is_named() -> None:
    assert abs(seen(NAME, run_of(loss=CLIMB + NOISE)).steps[0] - 151) <= 6


def test_a_fall_that_stays_is_progress() -> None:
    loss = np.concatenate([np.full(150, 2.0), np.full(150, 1.5)])
    assert state(NAME, run_of(loss=loss + NOISE)) is State.ABSENT


def test_the_end_of_a_stretch_of_bad_data_is_not_it() -> None:
    loss = np.full(300, 2.0)
    loss[100:112] += 1
    loss[200:212] += 1
    assert state(NAME, run_of(loss=loss + NOISE)) is State.ABSENT


def test_a_cut_of_the_learning_rate_explains_it() -> None:
    rate = np.repeat([1e-3, 1e-4], 150)
    assert state(NAME, run_of(loss=CLIMB + NOISE, learning_rate=rate)) is State.ABSENT


def test_a_new_epoch_explains_it() -> None:
    epoch = (np.arange(300) + 1) / 150
    assert state(NAME, run_of(loss=CLIMB + NOISE, epoch=epoch)) is State.ABSENT


def test_a_smooth_descent_in_noise_is_sound() -> None:
    loss = 1 + 2 * np.exp(-np.arange(300) / 80) + 4 * NOISE
    assert state(NAME, run_of(loss=loss)) is State.ABSENT


def test_a_short_log_cannot_tell() -> None:
    assert state(NAME, run_of(loss=CLIMB[140:170])) is State.UNKNOWN


def test_means_of_whole_epochs_cannot_tell() -> None:
    losses = [*np.linspace(2.0, 1.5, 40), *np.linspace(1.1, 1.4, 40)]
    records = [{"epoch": at, "loss": float(loss)} for at, loss in enumerate(losses)]
    assert state("loss_falls_back", run_of_records(records)) is State.UNKNOWN
