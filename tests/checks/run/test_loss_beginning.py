from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state


def test_records_at_twice_the_first_loss_are_present_from_the_first_of_them() -> None:
    loss = noisy(decay(300, 1.6, 0.1), 0.05)
    loss[[40, 41, 42, 60]] = 3.4
    finding = seen("loss_above_start", run_of(loss=loss))
    assert finding.state is State.PRESENT
    assert finding.steps == [41]
    assert finding.values["records"] == 4


def test_hard_batches_that_come_by_themselves_are_absent() -> None:
    loss = noisy(decay(300, 1.6, 0.1), 0.05)
    loss[[40, 47, 60, 90]] = 3.4
    assert state("loss_above_start", run_of(loss=loss)) is State.ABSENT


def test_one_bad_batch_is_absent() -> None:
    loss = noisy(decay(300, 1.6, 0.1), 0.05)
    loss[40] = 9.0
    assert state("loss_above_start", run_of(loss=loss)) is State.ABSENT


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("tails", ["normal", "lognormal", "t3"])
def test_a_noisy_curve_that_falls_is_not_present(tails: str, seed: int) -> None:
    assert state("loss_above_start", run_of(loss=noisy(decay(300), 0.2, seed, tails))) is not State.PRESENT


def test_where_the_first_records_vary_widely_it_cannot_be_told() -> None:
    assert state("loss_above_start", run_of(loss=[1.0, 5.0, 2.0, 8.0, 1.0, *[9.0] * 40])) is State.UNKNOWN


def test_where_the_evaluation_stands_still_batches_that_vary_cannot_tell() -> None:
    loss = [3.3, 3.2, 3.4, 3.3, 3.2, *[3.5, 5.2, 3.1, 3.9] * 10]
    run = run_of(loss=loss, eval_mse=dict.fromkeys(range(5, 46, 5), 4.02))
    assert state("loss_above_start", run_of(loss=loss)) is State.PRESENT
    assert state("loss_above_start", run) is State.UNKNOWN


@pytest.mark.parametrize("seed", range(20))
def test_records_that_scatter_around_one_level_are_not_above_the_first(seed: int) -> None:
    scatter = np.abs(np.random.default_rng(seed).normal(0.11, 0.06, 800))
    assert state("loss_above_start", run_of(loss=scatter)) is not State.PRESENT


def test_a_stretch_that_begins_late_has_no_beginning_to_lie_above() -> None:
    loss = {200.0 + n: 0.3 + 0.3 * (10 < n < 14) for n in range(60)}
    late = seen("loss_above_start", run_of(loss=loss))
    assert late.state is State.UNKNOWN
    assert "begins at step 200" in late.summary
    assert state("loss_above_start", run_of(loss=list(loss.values()))) is State.PRESENT
