from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, run_of_records, state

AT = range(20, 401, 20)


@pytest.mark.parametrize("seed", range(5))
def test_an_evaluation_that_is_far_worse_from_the_first_on_is_present(seed: int) -> None:
    loss = noisy(decay(400, 2.3, 1.0), 0.1, seed)
    assert state("eval_bad_from_start", run_of(loss=loss, eval_loss=dict.fromkeys(AT, 4.0))) is State.PRESENT


@pytest.mark.parametrize("seed", range(5))
def test_a_modest_gap_is_absent(seed: int) -> None:
    loss = decay(400, 2.3, 1.0)
    run = run_of(loss=noisy(loss, 0.1, seed), eval_loss={step: 1.25 * float(loss[step - 1]) for step in AT})
    assert state("eval_bad_from_start", run) is State.ABSENT


def test_a_gap_that_grows_is_another_symptom() -> None:
    run = run_of(loss=decay(400, 2.3, 0.1, 8), eval_loss={step: 2.0 + 0.01 * step for step in AT})
    assert state("eval_bad_from_start", run) is State.ABSENT


def test_a_first_evaluation_after_memorising_cannot_tell() -> None:
    run = run_of(loss=decay(400, 2.3, 0.05, 20), eval_loss=dict.fromkeys((200, 300, 400), 3.0))
    assert state("eval_bad_from_start", run) is State.UNKNOWN


def test_an_evaluation_before_training_cannot_tell() -> None:
    run = run_of(loss=dict.fromkeys(range(50, 60), 1.0), eval_loss={1: 5.0})
    assert state("eval_bad_from_start", run) is State.UNKNOWN


def test_without_an_evaluation_it_cannot_be_told() -> None:
    assert state("eval_bad_from_start", run_of(loss=np.ones(20))) is State.UNKNOWN


def test_a_first_evaluation_after_several_epochs_cannot_tell() -> None:
    at = range(100, 601, 100)
    run = run_of(
        loss={step: 0.1 / step for step in at},
        eval_loss={step: 0.7 + step / 2000 for step in at},
        epoch={step: step / 20 for step in at},
    )
    assert state("eval_bad_from_start", run) is State.UNKNOWN
    assert state("eval_gap_wide", run) is State.UNKNOWN
    assert state("eval_above_start", run) is State.UNKNOWN


@pytest.mark.parametrize(("first", "answer"), [(150.0, State.PRESENT), (1.5, State.ABSENT)])
def test_a_gap_that_grows_counts_only_where_it_was_far_too_wide_at_once(first: float, answer: State) -> None:
    losses = zip([0.5, 0.4, 0.2, 0.1, 0.05], [first, 2 * first, 4 * first, 8 * first, 16 * first], strict=True)
    records = [{"epoch": 1 + at, "loss": train, "eval_loss": one} for at, (train, one) in enumerate(losses)]
    assert state("eval_bad_from_start", run_of_records(records)) is answer


@pytest.mark.parametrize("name", ["eval_bad_from_start", "eval_gap_wide", "eval_above_start"])
def test_losses_that_fall_by_the_same_factor_may_be_sums_over_different_numbers_of_rows(name: str) -> None:
    loss = decay(400, 355.0, 92.0)
    run = run_of(loss=noisy(loss, 0.02), eval_loss={step: 7.5 * float(loss[step - 1]) for step in AT})
    assert state(name, run) is State.UNKNOWN


def test_an_evaluation_far_below_zero_beside_a_loss_that_is_not_is_present() -> None:
    evaluation = {step: -1e4 * step for step in AT}
    assert state("eval_bad_from_start", run_of(loss=decay(400, 101.0, 78.0), eval_loss=evaluation)) is State.PRESENT


@pytest.mark.parametrize(
    ("kind", "first", "expected"),
    [("boosting", 10, State.UNKNOWN), ("boosting", 1, State.PRESENT), ("supervised", 10, State.PRESENT)],
)
def test_trees_may_know_rows_by_heart_after_ten_rounds(kind: str, first: int, expected: State) -> None:
    at = range(first, first + 100, 10)
    run = run_of(loss=dict.fromkeys(at, 0.2), eval_loss=dict.fromkeys(at, 0.9), kind=kind)
    assert state("eval_bad_from_start", run) is expected


@pytest.mark.parametrize(("evaluated", "answer"), [(0.02, State.PRESENT), (0.35, State.ABSENT)])
def test_a_gap_that_grows_counts_where_hardly_anything_was_ever_right(evaluated: float, answer: State) -> None:
    losses = zip([1.7, 1.2, 0.8, 0.4, 0.2, 0.1], [3.6, 5.0, 6.5, 8.0, 9.0, 9.5], strict=True)
    rows = [
        {"epoch": at, "loss": train, "eval_loss": one, "accuracy": 0.4 + 0.1 * at, "eval_accuracy": evaluated}
        for at, (train, one) in enumerate(losses)
    ]
    assert state("eval_bad_from_start", run_of_records(rows)) is answer


LOSS = noisy(decay(300, 10.8, 3.2, 9.0), 0.02)


def beside(gap: NDArray[np.float64], kind: str = "pretraining") -> Run:
    at = range(30, 301, 30)
    return run_of(
        loss=LOSS,
        eval_loss={step: float(LOSS[step - 3 : step].mean() + more) for step, more in zip(at, gap, strict=True)},
        kind=kind,
    )


def test_the_same_gap_of_a_nat_at_every_evaluation_is_present() -> None:
    assert state("eval_gap_steady", beside(np.full(10, 1.0))) is State.PRESENT


def test_a_gap_of_hundredths_is_absent() -> None:
    assert state("eval_gap_steady", beside(np.full(10, 0.05))) is State.ABSENT


def test_a_gap_that_widens_is_absent() -> None:
    assert state("eval_gap_steady", beside(np.linspace(0.5, 2.5, 10))) is State.ABSENT


def test_another_kind_of_loss_cannot_tell() -> None:
    assert state("eval_gap_steady", beside(np.full(10, 1.0), "supervised")) is State.UNKNOWN


def test_a_first_loss_that_is_a_guess_among_tokens_tells_a_language_model() -> None:
    assert state("eval_gap_steady", beside(np.full(10, 1.0), "unknown")) is State.PRESENT
