from __future__ import annotations

import pytest

from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.models import State
from tests.runs import decay, run_of, run_of_records, state


@pytest.mark.parametrize(
    ("start", "kind", "config"),
    [(0.5, "supervised", {"num_labels": 10}), (0.3, "pretraining", {}), (0.02, "sft", {})],
)
def test_a_first_loss_that_takes_training_is_present(start: float, kind: str, config: dict[str, Scalar]) -> None:
    assert state("initial_loss_low", run_of(loss=decay(100, start, 0.01), kind=kind, config=config)) is State.PRESENT


@pytest.mark.parametrize(
    ("start", "kind", "config"),
    [(2.2, "supervised", {"num_labels": 10}), (2.0, "pretraining", {"vocab_size": 50257}), (0.5, "sft", {})],
)
def test_a_usual_first_loss_is_absent(start: float, kind: str, config: dict[str, Scalar]) -> None:
    assert state("initial_loss_low", run_of(loss=decay(100, start, 0.3), kind=kind, config=config)) is State.ABSENT


def test_a_late_first_record_cannot_tell() -> None:
    run = run_of(loss=decay(50, 0.1, 0.01), every=500, kind="sft")
    assert state("initial_loss_low", run) is State.UNKNOWN


def test_without_the_number_of_classes_it_cannot_be_told() -> None:
    assert state("initial_loss_low", run_of(loss=decay(50, 0.1, 0.01))) is State.UNKNOWN


def test_an_excerpt_whose_records_tell_their_epoch_cannot_tell() -> None:
    records = [{"loss": 0.02, "epoch": 1.5} for _ in range(20)]
    assert state("initial_loss_low", run_of_records(records, kind="sft")) is State.UNKNOWN
