from __future__ import annotations

import math

import pytest

from mldebug_mcp.models import State
from tests.runs import decay, run_of, seen, state


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_loss_that_becomes_nonfinite_is_present_with_its_step(bad: float) -> None:
    loss = decay(50)
    loss[30:] = bad
    finding = seen("loss_nonfinite", run_of(loss=loss))
    assert finding.state is State.PRESENT
    assert finding.steps[0] == 31
    assert finding.values["stays"] == 1


def test_a_finite_loss_has_none() -> None:
    assert state("loss_nonfinite", run_of(loss=decay(50))) is State.ABSENT


def test_without_a_loss_it_cannot_be_told() -> None:
    assert state("loss_nonfinite", run_of(eval_loss=[1.0, math.nan])) is State.UNKNOWN


def test_where_a_loss_goes_by_two_names_the_one_that_breaks_counts() -> None:
    finding = seen("loss_nonfinite", run_of(loss=decay(20), train_loss=[2.0] * 10 + [math.nan] * 10))
    assert finding.state is State.PRESENT
    assert finding.summary.startswith("train_loss is NaN at step 11;")


def test_a_part_counts_only_where_there_is_no_whole() -> None:
    part = [2.0, math.nan, math.nan]
    assert state("loss_nonfinite", run_of(loss_gen=part, loss_mel=[1.0] * 3)) is State.PRESENT
    assert state("loss_nonfinite", run_of(loss_gen=part, loss=[3.0] * 3)) is State.ABSENT


def test_a_part_stands_for_a_total_that_is_not_logged() -> None:
    run = run_of(G_A=[0.5, 0.4, math.nan, math.nan], D_A=[0.3, 0.2, 0.1, 0.1])
    finding = seen("loss_nonfinite", run)
    assert (finding.state, finding.steps) == (State.PRESENT, [3])
    assert finding.summary.startswith("G_A is NaN")


def test_a_part_beside_a_finite_total_is_not_judged() -> None:
    run = run_of(loss=[0.5, 0.4, 0.3], aux_loss=[0.1, math.nan, 0.1])
    assert state("loss_nonfinite", run) is State.ABSENT


def test_a_log_of_nothing_but_nan_is_present() -> None:
    assert state("loss_nonfinite", run_of(iou=[math.nan] * 4, objectness=[math.nan] * 4)) is State.PRESENT


def test_one_metric_of_nan_beside_others_cannot_tell() -> None:
    assert state("loss_nonfinite", run_of(iou=[math.nan] * 4, objectness=[0.5] * 4)) is State.UNKNOWN
