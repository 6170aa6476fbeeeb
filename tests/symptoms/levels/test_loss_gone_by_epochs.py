from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import decay, run_of, run_of_records, seen, state

NAME = "loss_gone_by_epochs"
GONE = decay(60, 1.7, 0.03)
TEN = np.linspace(0.2, 10, 60)


def test_a_loss_that_is_gone_after_ten_epochs_without_evaluation_is_present() -> None:
    finding = seen(NAME, run_of(loss=GONE, epoch=TEN))
    assert finding.values["epochs"] == 10
    assert "no evaluation" in finding.summary


def test_within_one_epoch_it_is_absent() -> None:
    assert state(NAME, run_of(loss=GONE, epoch=TEN / 10)) is State.ABSENT


def test_a_loss_that_stays_is_absent() -> None:
    assert state(NAME, run_of(loss=decay(60, 1.7, 0.6), epoch=TEN)) is State.ABSENT


def test_where_evaluation_is_logged_it_cannot_be_told() -> None:
    assert state(NAME, run_of(loss=GONE, epoch=TEN, eval_loss={30: 1.0, 60: 1.2})) is State.UNKNOWN


def test_without_epochs_it_cannot_be_told() -> None:
    assert state(NAME, run_of(loss=GONE)) is State.UNKNOWN


def test_four_records_over_many_epochs_are_enough() -> None:
    run = run_of_records([{"epoch": 4.0 * at, "loss": one} for at, one in ((1, 6.5), (2, 2.1), (3, 0.6), (4, 0.2))])
    assert state("loss_gone_by_epochs", run) is State.PRESENT


def test_an_accuracy_of_evaluation_tells_more_too() -> None:
    rows = [{"epoch": at, "loss": 3.0 / 4**at, "eval_accuracy": 0.9} for at in range(8)]
    assert state("loss_gone_by_epochs", run_of_records(rows)) is State.UNKNOWN
