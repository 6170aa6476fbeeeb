from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, run_of_records, seen, state

STEPS = range(20, 401, 20)
RISING = {step: 1.0 + 0.002 * abs(step - 120) for step in STEPS}
FALLING = {step: 1.0 + 0.5 * float(np.exp(-step / 80)) for step in STEPS}


def test_evaluation_that_rises_while_training_falls_is_present_from_its_minimum() -> None:
    finding = seen("eval_gap_grows", run_of(loss=decay(400, 2.0, 0.1), eval_loss=RISING))
    assert finding.state is State.PRESENT
    assert finding.steps == [120]


def test_most_of_several_evaluation_sets_is_present() -> None:
    run = run_of(loss=decay(400, 2.0, 0.1), eval_g0_loss=RISING, eval_g1_loss=RISING, eval_g2_loss=FALLING)
    finding = seen("eval_gap_grows", run)
    assert finding.state is State.PRESENT
    assert finding.summary.startswith("2 of 3 evaluation losses rise")


def test_one_of_several_evaluation_sets_is_absent() -> None:
    run = run_of(loss=decay(400), eval_g0_loss=RISING, eval_g1_loss=FALLING, eval_g2_loss=FALLING)
    assert state("eval_gap_grows", run) is State.ABSENT


@pytest.mark.parametrize("seed", range(10))
def test_a_noisy_evaluation_that_levels_off_is_absent(seed: int) -> None:
    evaluation = noisy(list(FALLING.values()), 0.004, seed)
    run = run_of(loss=decay(400), eval_loss=dict(zip(STEPS, evaluation.tolist(), strict=True)))
    assert state("eval_gap_grows", run) is State.ABSENT


def test_when_both_rise_it_is_another_symptom() -> None:
    loss = 1 + 0.002 * np.abs(np.arange(400) - 120)
    assert state("eval_gap_grows", run_of(loss=loss, eval_loss=RISING)) is State.ABSENT


def test_two_evaluations_cannot_tell() -> None:
    assert state("eval_gap_grows", run_of(loss=decay(40), eval_loss={20: 1.0, 40: 2.0})) is State.UNKNOWN


def test_without_an_evaluation_it_cannot_be_told() -> None:
    assert state("eval_gap_grows", run_of(loss=decay(40), eval_box_loss=decay(40))) is State.UNKNOWN


def test_a_small_rise_is_present_where_each_evaluation_is_above_the_one_before() -> None:
    levels = dict(
        zip(range(100, 1001, 100), [0.66, 0.55, 0.52, 0.494, 0.489, 0.485, 0.487, 0.489, 0.491, 0.493], strict=True)
    )
    run = run_of(loss=decay(1000, 1.2, 0.26), eval_loss=levels)
    assert seen("eval_gap_grows", run).steps == [600]


def test_a_small_rise_that_turns_back_is_absent() -> None:
    levels = dict(
        zip(range(100, 1001, 100), [0.66, 0.55, 0.52, 0.494, 0.489, 0.485, 0.491, 0.488, 0.492, 0.489], strict=True)
    )
    assert state("eval_gap_grows", run_of(loss=decay(1000, 1.2, 0.26), eval_loss=levels)) is State.ABSENT


def test_a_training_loss_that_rises_with_it_and_falls_back_later_is_absent() -> None:
    train = [0.9, 0.2, 0.15, 0.25, 0.35, 0.36, 0.34, 0.32, 0.3, 0.2, 0.17, 0.16]
    run = run_of(loss=train, eval_loss={3: 0.2, 5: 0.41, 7: 0.42, 9: 0.41, 12: 0.4})
    assert state("eval_gap_grows", run) is State.ABSENT


def test_three_rises_of_an_excerpt_from_the_middle_cannot_tell() -> None:
    run = run_of(loss={2600: 0.17, 2650: 0.17, 2700: 0.16}, eval_loss={2600: 0.18, 2650: 0.22, 2700: 0.28})
    assert state("eval_gap_grows", run) is State.UNKNOWN


@pytest.mark.parametrize(
    ("train", "answer"),
    [([1.004, 1.003, 1.002, 1.003, 1.001, 1.0], State.ABSENT), ([1.0, 0.8, 0.7, 0.6, 0.5, 0.4], State.PRESENT)],
)
def test_means_over_epochs_that_stand_still_learn_nothing_by_heart(train: list[float], answer: State) -> None:
    rising = [0.96, 0.94, 0.95, 0.97, 0.98, 1.0]
    pairs = enumerate(zip(train, rising, strict=True))
    run = run_of_records([{"epoch": 1 + at, "loss": loss, "eval_loss": one} for at, (loss, one) in pairs])
    assert state("eval_gap_grows", run) is answer


def test_an_evaluation_that_wanders_below_a_rough_training_loss_is_absent() -> None:
    loss = noisy(decay(30, 4.4, 3.2), 0.02)
    evaluation = {5: 3.65, 10: 3.72, 15: 3.73, 20: 2.87, 25: 2.9, 30: 2.95}
    assert state("eval_gap_grows", run_of(loss=loss, eval_loss=evaluation)) is State.ABSENT


def test_a_wobble_of_an_evaluation_far_below_a_training_loss_that_still_falls_is_absent() -> None:
    near_zero = dict(zip(range(50, 1001, 50), [0.019] * 10 + [0.0155, 0.017, 0.019, 0.02, 0.021] * 2, strict=True))
    assert state("eval_gap_grows", run_of(loss=decay(1000, 0.7, 0.3), eval_loss=near_zero)) is State.ABSENT


def test_a_rise_of_hundredths_where_most_was_learnt_before_the_first_evaluation_is_absent() -> None:
    loss = {epoch: 2.5 * 0.06 ** (epoch - 1) + 0.0005 for epoch in range(1, 13)}
    evaluation = [0.345, 0.12, 0.083, 0.09, 0.085, 0.088, 0.093, 0.0925, 0.094, 0.092, 0.0915, 0.0918]
    run = run_of(loss=loss, eval_loss=dict(zip(range(1, 13), evaluation, strict=True)))
    assert state("eval_gap_grows", run) is State.ABSENT


@pytest.mark.parametrize("seed", range(20))
def test_the_lowest_of_many_rough_evaluations_is_no_minimum(seed: int) -> None:
    epochs = np.arange(1, 61)
    evaluation = noisy(0.38 + 1.9 * np.exp(-epochs / 12), 0.03, seed)
    run = run_of(loss=0.25 + 2.2 * np.exp(-epochs / 12), eval_loss=evaluation)
    assert state("eval_gap_grows", run) is State.ABSENT


@pytest.mark.parametrize(("last", "expected"), [(25.1, State.ABSENT), (27.5, State.PRESENT)])
def test_a_rise_beside_an_error_rate_that_still_falls_is_remarked_only(last: float, expected: State) -> None:
    wer = dict(zip(range(1, 8), [32.0, 28.0, 26.5, 26.0, 25.6, 25.3, last], strict=True))
    evaluation = dict(zip(range(1, 8), [0.40, 0.36, 0.35, 0.36, 0.38, 0.40, 0.41], strict=True))
    loss = dict(zip(range(1, 8), [0.6, 0.3, 0.18, 0.09, 0.05, 0.03, 0.02], strict=True))
    assert state("eval_gap_grows", run_of(loss=loss, eval_loss=evaluation, eval_wer=wer)) is expected


def test_a_rise_like_those_that_the_evaluation_came_back_from_is_none() -> None:
    steps = np.arange(300)
    wandering = 0.4 * np.exp(-steps / 150) + 0.3 + 0.012 * np.sin(steps / 9)
    loss = noisy(0.4 * np.exp(-steps / 150) + 0.25, 0.1)
    assert state("eval_gap_grows", run_of(loss=loss, eval_loss=wandering)) is State.ABSENT
    rising = wandering + 0.001 * np.clip(steps - 200, 0, None)
    assert state("eval_gap_grows", run_of(loss=loss, eval_loss=rising)) is State.PRESENT


@pytest.mark.parametrize(("right", "lowest", "expected"), [
    ([0.62, 0.94, 0.951, 0.946, 0.944, 0.94, 0.941, 0.94], 0.15, State.UNKNOWN),  # a few wrong answers, too sure
    ([0.9, 0.97, 0.985, 0.984, 0.985, 0.986, 0.985, 0.986], 0.06, State.UNKNOWN),
    ([0.62, 0.94, 0.951, 0.93, 0.92, 0.91, 0.905, 0.902], 0.15, State.PRESENT),  # fewer are right
    ([0.4, 0.7, 0.76, 0.757, 0.758, 0.755, 0.758, 0.757], 0.15, State.PRESENT),  # many are wrong
    ([0.62, 0.94, 0.951, 0.946, 0.944, 0.94, 0.941, 0.94], 0.5, State.PRESENT),  # much of the loss is left
])  # fmt: skip
def test_a_small_rise_where_nearly_all_answers_are_right_and_stay_so_is_of_the_wrong_ones(
    right: list[float], lowest: float, expected: State
) -> None:
    rise = [1.0, 0.03, 0.0, 0.02, 0.05, 0.06, 0.06, 0.07]
    evaluated = {15 * (at + 1): lowest + more for at, more in enumerate(rise)}
    accuracy = {15 * (at + 1): share for at, share in enumerate(right)}
    loss = noisy(decay(120, 1.4, 0.02), 0.02)
    assert state("eval_gap_grows", run_of(loss=loss, eval_loss=evaluated, eval_accuracy=accuracy)) is expected


def ending(levels: list[float]) -> Run:
    return run_of(
        loss=noisy(decay(120, 1.5, 0.8), 0.02),
        eval_loss={10 * (place + 1): level for place, level in enumerate(levels)},
        kind="sft",
    )


def test_a_rise_of_two_per_cent_by_turns_is_what_fine_tuning_ends_with() -> None:
    run = ending([1.2, 1.12, 1.08, 1.06, 1.053, 1.05, 1.051, 1.0505, 1.073, 1.0725, 1.074, 1.0735])
    assert state("eval_gap_grows", run) is State.UNKNOWN


def test_a_rise_by_a_tenth_is_more() -> None:
    run = ending([1.2, 1.12, 1.08, 1.06, 1.055, 1.05, 1.08, 1.07, 1.13, 1.12, 1.16, 1.155])
    assert state("eval_gap_grows", run) is State.PRESENT


def test_a_small_rise_at_every_evaluation_is_more() -> None:
    run = ending([1.2, 1.1, 1.06, 1.05, 1.051, 1.053, 1.056, 1.06, 1.064, 1.068, 1.072, 1.076])
    assert state("eval_gap_grows", run) is State.PRESENT


NEVER = "eval_never_improves"
STILL_FALLS = 1 + 2 * np.exp(-np.arange(100) / 30)


def evaluated(values: list[float]) -> dict[int, float]:
    return {10 * (number + 1): value for number, value in enumerate(values)}


def test_an_evaluation_that_only_rises_is_seen() -> None:
    run = run_of(loss=STILL_FALLS, eval_loss=evaluated([2.9, 3.1, 3.4, 3.6, 3.9, 4.0, 4.2, 4.3]))
    assert state(NEVER, run) is State.PRESENT


def test_one_that_improves_before_it_rises_is_not() -> None:
    run = run_of(loss=STILL_FALLS, eval_loss=evaluated([2.9, 2.2, 1.9, 1.8, 1.9, 2.1, 2.3, 2.5]))
    assert state(NEVER, run) is State.ABSENT


def test_one_that_falls_is_not_judged() -> None:
    run = run_of(loss=STILL_FALLS, eval_loss=evaluated([2.9, 2.2, 1.9, 1.8, 1.7, 1.6, 1.5, 1.5]))
    assert state(NEVER, run) is State.UNKNOWN


def test_an_excerpt_of_late_epochs_cannot_tell() -> None:
    records = [
        {"epoch": 43 + index, "loss": 0.02 - index / 2000, "eval_loss": 0.0078 + index / 3000} for index in range(12)
    ]
    assert state("eval_never_improves", run_of_records(records)) is State.UNKNOWN


def test_an_evaluation_that_scatters_on_its_way_far_up_rises_too() -> None:
    scattered = evaluated([2.6, 3.4, 3.0, 5.9, 4.2, 6.1, 4.1, 5.6, 3.9, 5.2])
    run = run_of(loss=STILL_FALLS, eval_loss=scattered)
    assert state("eval_gap_grows", run) is State.PRESENT
    assert state(NEVER, run) is State.PRESENT


@pytest.mark.parametrize("values", [[2.6, 2.7, 2.62, 2.9, 2.7, 2.75], [0.01, 0.02, 0.012, 0.03, 0.015, 0.02]])
def test_one_that_scatters_a_little_above_its_first_does_not_rise(values: list[float]) -> None:
    assert state("eval_gap_grows", run_of(loss=STILL_FALLS, eval_loss=evaluated(values))) is State.ABSENT


def test_a_rise_from_one_evaluation_to_the_next_counts_though_it_is_little_of_where_the_loss_began() -> None:
    loss = {at * 10: value for at, value in enumerate(noisy(decay(71, 3.6, 0.25, 12), 0.03))}
    evaluation = dict(zip(range(0, 800, 100), [3.59, 1.22, 0.54, 0.438, 0.421, 0.4015, 0.4232, 0.455], strict=True))
    falls_on = {at: value * (1 - at / 1500) for at, value in loss.items()}
    assert state("eval_gap_grows", run_of(loss=falls_on, eval_loss=evaluation)) is State.PRESENT
