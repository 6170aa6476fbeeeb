from __future__ import annotations

import math

import numpy as np
import pytest

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import Curve, decay, noisy, run_of, seen, state

NAN = math.nan
WARMUP = [0.1 * step for step in range(1, 11)]
EVALUATED = {10: 1.64, 20: 1.64, 30: 1.64, 40: 1.64}


@pytest.mark.parametrize("bad", [NAN, math.inf, -math.inf])
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
    assert state("loss_nonfinite", run_of(eval_loss=[1.0, NAN])) is State.UNKNOWN


def test_where_a_loss_goes_by_two_names_the_one_that_breaks_counts() -> None:
    finding = seen("loss_nonfinite", run_of(loss=decay(20), train_loss=[2.0] * 10 + [NAN] * 10))
    assert finding.state is State.PRESENT
    assert finding.summary.startswith("train_loss is NaN at step 11;")


def test_a_part_counts_only_where_there_is_no_whole() -> None:
    part = [2.0, NAN, NAN]
    assert state("loss_nonfinite", run_of(loss_gen=part, loss_mel=[1.0] * 3)) is State.PRESENT
    assert state("loss_nonfinite", run_of(loss_gen=part, loss=[3.0] * 3)) is State.ABSENT


def test_a_part_stands_for_a_total_that_is_not_logged() -> None:
    run = run_of(G_A=[0.5, 0.4, NAN, NAN], D_A=[0.3, 0.2, 0.1, 0.1])
    finding = seen("loss_nonfinite", run)
    assert (finding.state, finding.steps) == (State.PRESENT, [3])
    assert finding.summary.startswith("G_A is NaN")


def test_a_part_beside_a_finite_total_is_not_judged() -> None:
    run = run_of(loss=[0.5, 0.4, 0.3], aux_loss=[0.1, NAN, 0.1])
    assert state("loss_nonfinite", run) is State.ABSENT


def test_a_log_of_nothing_but_nan_is_present() -> None:
    assert state("loss_nonfinite", run_of(iou=[NAN] * 4, objectness=[NAN] * 4)) is State.PRESENT


def test_one_metric_of_nan_beside_others_cannot_tell() -> None:
    assert state("loss_nonfinite", run_of(iou=[NAN] * 4, objectness=[0.5] * 4)) is State.UNKNOWN


def test_a_nan_in_the_first_step_is_present() -> None:
    finding = seen("loss_nonfinite_at_first", run_of(loss=[NAN, NAN, NAN]))
    assert finding.state is State.PRESENT
    assert "at step 1" in finding.summary


def test_a_loss_that_is_lost_later_is_absent() -> None:
    assert state("loss_nonfinite_at_first", run_of(loss=[2.0, NAN, NAN])) is State.ABSENT


def test_a_first_record_over_several_steps_does_not_tell_which_of_them_it_was() -> None:
    assert state("loss_nonfinite_at_first", run_of(loss=[NAN, NAN, NAN], every=10)) is State.UNKNOWN
    assert state("loss_nonfinite_at_first", run_of(loss={1: NAN, 11: NAN})) is State.UNKNOWN


def test_a_finite_loss_is_not_judged_at_its_first_step() -> None:
    assert state("loss_nonfinite_at_first", run_of(loss=[2.0, 1.9])) is State.UNKNOWN


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


@pytest.mark.parametrize("lost", [np.inf, NAN])
def test_a_loss_that_comes_back_and_goes_on_falling_is_present(lost: float) -> None:
    loss = decay(40, 20.0, 2.0)
    loss[[4, 11, 12, 30]] = lost
    finding = seen("loss_nonfinite_passes", run_of(loss=loss))
    assert finding.state is State.PRESENT
    assert finding.steps == [5]
    assert finding.values["lost"] == 4


@pytest.mark.parametrize(
    "loss",
    [
        [3.0, 2.5, 2.2, NAN, NAN, NAN, NAN],
        [3.0, 2.5, 2.2, np.inf, 9.0, 8.0, 9.5, 9.0],
        [3.0, 2.0, 1.0],
        [NAN] * 4,
        [NAN, 3.0, 2.0, 2.0, 1.9],
    ],
    ids=["lost for good", "back higher", "always finite", "never finite", "lost at first"],
)
def test_of_a_loss_that_does_not_come_back_as_good_it_cannot_be_told(loss: list[float]) -> None:
    assert state("loss_nonfinite_passes", run_of(loss=loss)) is State.UNKNOWN


def test_where_an_evaluation_is_lost_too_it_is_not_these_batches_alone() -> None:
    loss = decay(40, 20.0, 2.0)
    loss[[4, 11, 12, 30]] = NAN
    assert state("loss_nonfinite_passes", run_of(loss=loss, eval_loss={10: 9.0, 20: NAN, 30: 5.0})) is State.UNKNOWN


def test_a_loss_that_is_never_finite_beside_a_finite_evaluation_is_seen() -> None:
    assert state("loss_nan_alone", run_of(loss=[NAN] * 40, eval_loss=EVALUATED)) is State.PRESENT


def test_an_evaluation_that_is_always_zero_tells_nothing_of_the_weights() -> None:
    assert state("loss_nan_alone", run_of(loss=[NAN] * 40, eval_loss=dict.fromkeys(EVALUATED, 0.0))) is State.UNKNOWN


def test_a_loss_that_was_finite_first_is_another_failure() -> None:
    assert state("loss_nan_alone", run_of(loss=[1.6] * 5 + [NAN] * 35, eval_loss=EVALUATED)) is State.ABSENT


def test_where_evaluation_fails_too_the_weights_are_spoilt() -> None:
    assert state("loss_nan_alone", run_of(loss=[NAN] * 40, eval_loss={**EVALUATED, 40: NAN})) is State.ABSENT


def test_without_evaluation_it_cannot_be_told() -> None:
    assert state("loss_nan_alone", run_of(loss=[NAN] * 40)) is State.UNKNOWN


def test_a_loss_that_stays_nan_while_gradients_and_evaluation_are_finite_is_one_of_the_log() -> None:
    """Source: transformers 5.24.0, whose Trainer keeps the NaN of one row without labels in its sum."""
    norm = [1.9, 1.8, 1.6, 0.0, *[0.9] * 36]
    finding = seen("loss_nan_alone", run_of(loss=[3.2, 3.1, 3.0, *[NAN] * 37], grad_norm=norm, eval_loss=EVALUATED))
    assert finding.state is State.PRESENT
    assert finding.summary == (
        "loss is not finite from step 4 on, while grad_norm is finite in all 37 records there, last 0.9, "
        "and eval_loss goes from 1.64 to 1.64: the weights are finite"
    )


@pytest.mark.parametrize(
    ("norm", "evaluated"),
    [([1.9] * 3 + [NAN] * 37, EVALUATED), ([1.9] * 3 + [0.0] * 37, EVALUATED), ([1.9] * 40, {10: 1.6, 20: NAN})],
    ids=["no norm", "no gradient", "no evaluation"],
)
def test_a_loss_that_takes_gradients_or_evaluation_with_it_is_not_of_the_log(
    norm: list[float], evaluated: dict[int, float]
) -> None:
    run = run_of(loss=[3.2, 3.1, 3.0, *[NAN] * 37], grad_norm=norm, eval_loss=evaluated)
    assert state("loss_nan_alone", run) is State.ABSENT


def test_a_loss_that_climbs_first_is_seen() -> None:
    assert state("loss_climbs_to_nan", run_of(loss=[2.0, 1.9, 1.8, 1.8, 3.0, 9.0, 80.0, NAN, NAN])) is State.PRESENT


def test_one_that_is_nan_from_one_record_to_the_next_is_not() -> None:
    assert state("loss_climbs_to_nan", run_of(loss=[2.0, 1.9, 1.8, 1.8, 1.7, 1.8, 1.7, NAN, NAN])) is State.ABSENT


def test_a_finite_loss_is_not_judged_on_what_led_to_it() -> None:
    assert state("loss_climbs_to_nan", run_of(loss=[2.0, 1.9, 1.8, 1.8, 1.7])) is State.UNKNOWN


def test_nan_from_the_first_record_on_is_not_judged() -> None:
    assert state("loss_climbs_to_nan", run_of(loss=[NAN] * 5)) is State.UNKNOWN


def test_an_infinity_out_of_nothing_cannot_be_told() -> None:
    loss = [*np.linspace(2.0, 1.0, 20), np.inf, NAN, NAN]
    assert state("loss_climbs_to_nan", run_of(loss=loss)) is State.UNKNOWN


def test_a_climb_by_powers_of_ten_is_seen_in_fewer_records() -> None:
    assert state("loss_climbs_to_nan", run_of(loss=[5.7e7, 3e18, 1e29, *[NAN] * 10])) is State.PRESENT
    assert state("loss_climbs_to_nan", run_of(loss=[2.0, 9.0, *[NAN] * 10])) is State.UNKNOWN


def lost_at(at: int, norm: Curve | None = None) -> Run:
    """Return a run of forty records whose loss is NaN from one of them on."""
    loss = noisy(decay(40), 0.02)
    loss[at:] = NAN
    return run_of({} if norm is None else {"grad_norm": norm}, loss=loss)


def norms(seed: int = 0, size: float = 0.3) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.exp(size * np.random.default_rng(seed).standard_normal(40))


def test_a_norm_that_is_infinite_beside_a_finite_loss_is_lost_first() -> None:
    norm = norms()
    norm[28:] = np.inf
    finding = seen("gradient_lost_first", lost_at(30, norm))
    assert finding.state is State.PRESENT
    assert finding.steps == [29]
    assert finding.values["steps_before"] == 2


def test_a_norm_that_is_lost_with_the_loss_is_not_lost_first() -> None:
    norm = norms()
    norm[30:] = NAN
    assert state("gradient_lost_first", lost_at(30, norm)) is State.ABSENT
    assert state("gradient_lost_first", lost_at(30)) is State.UNKNOWN


def test_losses_that_are_lost_ever_more_often_spread() -> None:
    loss = noisy(decay(400), 0.02)
    draw = np.random.default_rng(0).random(400)
    loss[draw < np.linspace(-0.5, 1.0, 400)] = NAN
    finding = seen("nonfinite_spreads", run_of(loss=loss))
    assert finding.state is State.PRESENT
    assert finding.values["last"] > 0.6
    assert finding.values["first"] < 0.3


@pytest.mark.parametrize("seed", range(10))
def test_losses_that_are_lost_as_often_at_the_end_as_at_first_do_not_spread(seed: int) -> None:
    loss = noisy(decay(400), 0.02)
    loss[np.random.default_rng(seed).random(400) < 0.2] = NAN
    assert state("nonfinite_spreads", run_of(loss=loss)) is State.ABSENT


def test_losses_that_are_lost_now_and_then_all_along_recur() -> None:
    loss = noisy(decay(400), 0.02)
    loss[::25] = NAN
    finding = seen("nonfinite_recurs", run_of(loss=loss))
    assert finding.state is State.PRESENT
    assert finding.values["times"] == 16


def test_a_batch_that_is_lost_once_in_each_of_three_passes_does_not_recur() -> None:
    loss = noisy(decay(300), 0.02)
    loss[50::100] = NAN
    assert state("nonfinite_recurs", run_of(loss=loss)) is State.ABSENT
    assert state("nonfinite_recurs", lost_at(10)) is State.UNKNOWN


def test_a_loss_that_is_lost_for_good_does_not_spread() -> None:
    assert state("nonfinite_spreads", lost_at(10)) is State.UNKNOWN


def test_of_a_policy_what_came_before_is_judged_and_not_the_level() -> None:
    run = run_of(loss=[0.1, 0.2, NAN, NAN, NAN], learning_rate=[0.1, 0.2, 0.3, 0.4, 0.5], kind="grpo")
    assert state("loss_nonfinite", run) is State.PRESENT
    assert state("loss_nonfinite_in_warmup", run) is State.UNKNOWN
