from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import decay, run_of, state


def test_the_same_number_in_every_record_is_present() -> None:
    assert state("loss_constant", run_of(loss=np.full(20, 2.3026))) is State.PRESENT


def test_the_same_number_from_some_step_on_is_present() -> None:
    assert state("loss_constant", run_of(loss=[3.0, 2.5, 2.4, *[2.3] * 10])) is State.PRESENT


def test_a_rounded_end_is_absent() -> None:
    assert state("loss_constant", run_of(loss=np.round(decay(100), 4))) is State.ABSENT


def test_four_records_cannot_tell() -> None:
    assert state("loss_constant", run_of(loss=[1.0] * 4)) is State.UNKNOWN


def test_a_loss_that_moves_in_its_last_digit_beside_an_accuracy_that_stands_is_present() -> None:
    loss = [0.7534, 0.7533, 0.7534, 0.7534, 0.7534]
    assert state("loss_constant", run_of(loss=loss, accuracy=np.full(5, 0.4992))) is State.PRESENT
    assert state("loss_constant", run_of(loss=loss, accuracy=np.ones(5))) is State.ABSENT
    assert state("loss_constant", run_of(loss=loss, accuracy=[0.49, 0.5, 0.49, 0.5, 0.51])) is State.ABSENT


def test_a_loss_that_comes_to_rest_by_the_last_printed_decimal_is_learnt() -> None:
    learnt = [0.2356, 0.0131, 0.0074, 0.0053, 0.0048, 0.0046, 0.0045, 0.0044, *[0.0043] * 7]
    fallen = [0.2356, 0.0131, 0.0074, 0.0053, 0.0048, 0.0046, 0.0045, 0.0094, *[0.0043] * 7]
    assert state("loss_constant", run_of(loss=learnt)) is State.ABSENT
    assert state("loss_constant", run_of(loss=fallen)) is State.PRESENT
