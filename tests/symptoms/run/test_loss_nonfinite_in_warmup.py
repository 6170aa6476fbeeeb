from __future__ import annotations

import math

from mldebug_mcp.models import State
from tests.runs import run_of, seen, state

NAN = math.nan
WARMUP = [0.1 * step for step in range(1, 11)]


def test_a_loss_lost_while_the_rate_climbs_is_present_with_the_rate_there() -> None:
    run = run_of(loss=[2.0, 1.8, 1.7, 1.9, NAN, NAN, NAN, NAN, NAN, NAN], learning_rate=WARMUP)
    finding = seen("loss_nonfinite_in_warmup", run)
    assert finding.state is State.PRESENT
    assert finding.steps == [5.0]
    assert finding.values["rate"] == 0.5
    assert "from 0.1 to 0.5" in finding.summary


def test_a_log_that_ends_in_the_nan_shows_it_too() -> None:
    run = run_of(loss=[2.0, 1.8, 1.7, NAN], learning_rate=WARMUP[:4])
    assert state("loss_nonfinite_in_warmup", run) is State.PRESENT


def test_a_loss_lost_as_the_rate_reaches_its_peak_is_present() -> None:
    run = run_of(loss=[2.0] * 10 + [NAN] * 3, learning_rate=[*WARMUP, 1.0, 0.9, 0.8])
    assert state("loss_nonfinite_in_warmup", run) is State.PRESENT


def test_a_loss_lost_long_after_warmup_is_absent() -> None:
    decay = [1.0 - 0.02 * step for step in range(30)]
    run = run_of(loss=[2.0] * 30 + [NAN] * 10, learning_rate=[*WARMUP, *decay])
    assert state("loss_nonfinite_in_warmup", run) is State.ABSENT


def test_a_rate_that_has_hardly_climbed_is_no_warmup() -> None:
    run = run_of(loss=[2.0, NAN, NAN, NAN], learning_rate=[0.1, 0.12, 0.14, 0.2])
    assert state("loss_nonfinite_in_warmup", run) is State.UNKNOWN


def test_without_a_warmup_or_a_nan_it_is_not_judged() -> None:
    assert state("loss_nonfinite_in_warmup", run_of(loss=[2.0, 1.9, NAN], learning_rate=[0.1] * 3)) is State.UNKNOWN
    assert state("loss_nonfinite_in_warmup", run_of(loss=[2.0, 1.9], learning_rate=WARMUP[:2])) is State.UNKNOWN
    assert state("loss_nonfinite_in_warmup", run_of(loss=[NAN, NAN], learning_rate=WARMUP[:2])) is State.UNKNOWN
