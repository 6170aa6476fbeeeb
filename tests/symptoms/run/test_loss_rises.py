"""`loss_rises`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state


@pytest.mark.parametrize("seed", range(4))
def test_a_slow_rise_from_beginning_to_end_is_present(seed: int) -> None:
    finding = seen(
        "loss_rises", run_of(loss=noisy(np.linspace(3.67, 3.74, 1000), 0.01, seed), eval_loss={1: 3.5, 900: 3.6})
    )
    assert finding.state is State.PRESENT
    assert finding.values["rise"] == pytest.approx(0.07, rel=0.2)
    assert "eval_loss goes from 3.5 to 3.6" in finding.summary


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("tails", ["normal", "t3"])
def test_a_level_curve_is_absent(tails: str, seed: int) -> None:
    assert state("loss_rises", run_of(loss=noisy(np.full(1000, 3.7), 0.02, seed, tails))) is State.ABSENT


@pytest.mark.parametrize("seed", range(4))
def test_a_rise_within_the_noise_is_absent(seed: int) -> None:
    assert state("loss_rises", run_of(loss=noisy(np.linspace(3.7, 3.72, 300), 0.05, seed))) is State.ABSENT


def test_a_loss_that_falls_first_is_absent() -> None:
    loss = np.concatenate([decay(500), np.linspace(1.5, 1.6, 100)])
    assert state("loss_rises", run_of(loss=noisy(loss, 0.01))) is State.ABSENT


def test_a_divergence_says_more() -> None:
    loss = np.concatenate([decay(100), np.linspace(1.5, 9, 300)])
    assert state("loss_rises", run_of(loss=noisy(loss, 0.01))) is State.UNKNOWN


def test_a_short_log_cannot_tell() -> None:
    assert state("loss_rises", run_of(loss=np.linspace(3, 4, 20))) is State.UNKNOWN


def test_twelve_records_in_order_rise() -> None:
    loss = [10.38, 10.47, 10.52, 10.58, 10.63, 10.69, 10.75, 10.83, 10.89, 10.95, 10.99, 11.0]
    assert state("loss_rises", run_of(loss=loss)) is State.PRESENT


@pytest.mark.parametrize("seed", range(10))
def test_twelve_records_that_only_wander_do_not(seed: int) -> None:
    assert state("loss_rises", run_of(loss=noisy(np.full(12, 2.0), 0.05, seed))) is State.ABSENT
