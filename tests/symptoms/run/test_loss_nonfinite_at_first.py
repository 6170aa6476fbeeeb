from __future__ import annotations

import math

from mldebug_mcp.models import State
from tests.runs import run_of, seen, state

NAN = math.nan


def test_a_nan_in_the_first_step_is_present() -> None:
    finding = seen("loss_nonfinite_at_first", run_of(loss=[NAN, NAN, NAN]))
    assert finding.state is State.PRESENT
    assert "at step 1" in finding.summary


def test_a_loss_that_is_lost_later_is_absent() -> None:
    assert state("loss_nonfinite_at_first", run_of(loss=[2.0, NAN, NAN])) is State.ABSENT


def test_a_first_record_over_several_steps_does_not_tell_which_of_them_it_was() -> None:
    assert state("loss_nonfinite_at_first", run_of(loss=[NAN, NAN, NAN], every=10)) is State.UNKNOWN
    assert state("loss_nonfinite_at_first", run_of(loss={1: NAN, 11: NAN})) is State.UNKNOWN


def test_a_finite_loss_is_not_judged() -> None:
    assert state("loss_nonfinite_at_first", run_of(loss=[2.0, 1.9])) is State.UNKNOWN
