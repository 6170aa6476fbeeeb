from __future__ import annotations

import math

from mldebug_mcp.models import State
from tests.runs import run_of, seen, state

NAN = math.nan


def test_a_part_that_stays_finite_is_present_and_both_are_named() -> None:
    run = run_of(loss=[1.9, NAN, NAN], loss_box=[0.3, NAN, NAN], loss_cls=[1.6, 1.5, 1.4])
    finding = seen("loss_part_finite", run)
    assert finding.state is State.PRESENT
    assert "loss_cls" in finding.summary
    assert "loss_box" in finding.summary


def test_weights_that_are_lost_take_all_parts_with_them() -> None:
    run = run_of(loss=[1.9, NAN, NAN], loss_box=[0.3, NAN, NAN], loss_cls=[1.6, NAN, NAN])
    assert state("loss_part_finite", run) is State.ABSENT


def test_without_parts_it_cannot_be_told() -> None:
    assert state("loss_part_finite", run_of(loss=[1.9, NAN, NAN], learning_rate=[0.1, 0.1, 0.1])) is State.UNKNOWN


def test_a_finite_loss_is_not_judged() -> None:
    assert state("loss_part_finite", run_of(loss=[1.9, 1.8], loss_cls=[1.6, 1.5])) is State.UNKNOWN


def test_a_log_that_ends_at_the_first_nan_does_not_tell_whether_the_weights_are_lost() -> None:
    run = run_of(loss=[1.9, 1.8, NAN], loss_box=[0.3, 0.3, NAN], loss_cls=[1.6, 1.5, 1.4])
    assert state("loss_part_finite", run) is State.UNKNOWN
