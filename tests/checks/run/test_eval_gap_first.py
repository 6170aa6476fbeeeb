from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Run
from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, run_of_records, seen, state

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


def test_a_gap_that_grows_from_the_first_evaluation_on_is_another_symptom() -> None:
    first = 1.5
    losses = zip([0.5, 0.4, 0.2, 0.1, 0.05], [first, 2 * first, 4 * first, 8 * first, 16 * first], strict=True)
    records = [{"epoch": 1 + at, "loss": train, "eval_loss": one} for at, (train, one) in enumerate(losses)]
    assert state("eval_bad_from_start", run_of_records(records)) is not State.PRESENT


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


LOSS = noisy(decay(300, 10.8, 3.2, 9.0), 0.02)


def beside(gap: NDArray[np.float64], kind: str = "pretraining") -> Run:
    at = range(30, 301, 30)
    return run_of(
        loss=LOSS,
        eval_loss={step: float(LOSS[step - 3 : step].mean() + more) for step, more in zip(at, gap, strict=True)},
        kind=kind,
    )


def test_the_same_gap_of_a_nat_at_every_evaluation_is_present() -> None:
    assert state("eval_bad_from_start", beside(np.full(10, 1.0))) is State.PRESENT


def test_a_gap_of_hundredths_is_absent() -> None:
    assert state("eval_bad_from_start", beside(np.full(10, 0.05))) is State.ABSENT


def test_a_gap_that_widens_is_absent() -> None:
    assert state("eval_bad_from_start", beside(np.linspace(0.5, 2.5, 10))) is not State.PRESENT


def test_a_nat_in_another_kind_of_loss_is_not_as_much() -> None:
    assert state("eval_bad_from_start", beside(np.full(10, 1.0), "supervised")) is not State.PRESENT


ONE_PASS: dict[str, Scalar] = {"train_rows": 6400, "per_device_train_batch_size": 16}
FALLS = noisy(decay(400, 2.3, 0.5, 4), 0.05)


def apart(gap: NDArray[np.float64], config: dict[str, Scalar] | None = None, kind: str = "supervised") -> Run:
    smooth = decay(400, 2.3, 0.5, 4)
    evaluation = {step: float(smooth[step - 1] + more) for step, more in zip(AT, gap, strict=True)}
    return run_of(loss=FALLS, eval_loss=evaluation, config=config or ONE_PASS, kind=kind)


def test_a_gap_that_opens_within_the_first_pass_is_seen_with_the_passes() -> None:
    finding = seen("eval_gap_in_first_pass", apart(np.linspace(0, 0.6, 20)))
    assert finding.state is State.PRESENT
    assert "up to pass 1 over the data" in finding.summary
    assert finding.values["gap"] > 0.4


@pytest.mark.parametrize("config", [{**ONE_PASS, "train_rows": 640}, {"seed": 1}], ids=["ten passes", "not known"])
def test_the_same_gap_after_several_passes_or_unknown_ones_cannot_tell(config: dict[str, Scalar]) -> None:
    assert state("eval_gap_in_first_pass", apart(np.linspace(0, 0.6, 20), config)) is State.UNKNOWN


@pytest.mark.parametrize(
    "gap",
    [
        np.zeros(20),
        np.full(20, 0.3),
        np.linspace(0, 0.1, 20),
        np.linspace(0, -0.6, 20),
        np.linspace(0.5, 0.0, 20),
        0.25 * np.random.default_rng(4).standard_normal(20),
    ],
    ids=["none", "steady", "slight", "dropout", "closes", "few rows of evaluation"],
)
def test_other_courses_of_a_first_pass_are_sound(gap: NDArray[np.float64]) -> None:
    assert state("eval_gap_in_first_pass", apart(gap)) is State.ABSENT


def test_a_language_model_that_is_tuned_in_one_pass_on_other_text_has_a_slight_gap() -> None:
    loss = noisy(decay(400, 1.6, 1.1), 0.1)
    evaluation = {step: 1.5 - 0.0003 * step for step in AT}
    run = run_of(loss=loss, eval_loss=evaluation, config=ONE_PASS, kind="sft")
    assert state("eval_gap_in_first_pass", run) is State.ABSENT


@pytest.mark.parametrize(("factor", "expected"), [(20.0, State.UNKNOWN), (4.0, State.PRESENT)])
def test_an_evaluation_that_falls_in_step_at_twenty_times_the_loss_is_a_sum_over_more_rows(
    factor: float, expected: State
) -> None:
    loss = noisy(decay(100, 4.0, 2.5), 0.02)
    at = range(10, 101, 10)
    evaluation = {step: factor * float(loss[step - 1]) for step in at}
    assert state("eval_bad_from_start", run_of(loss=loss, eval_loss=evaluation)) is expected
