from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, state


def test_accuracies_that_end_far_below_one_half_are_seen() -> None:
    assert (
        state("dpo_accuracy_below_chance", run_of({"rewards/accuracies": [0.5, 0.4, 0.3, 0.2, 0.1, 0.1, 0.1, 0.12]}))
        is State.PRESENT
    )
    assert (
        state("dpo_accuracy_below_chance", run_of({"eval_rewards/accuracies": [0.3, 0.1, 0.06, 0.05, 0.05]}))
        is State.PRESENT
    )


def test_accuracies_near_one_half_are_not() -> None:
    assert (
        state("dpo_accuracy_below_chance", run_of({"rewards/accuracies": [0.5, 0.47, 0.52, 0.49, 0.45, 0.5]}))
        is State.ABSENT
    )


def test_zero_in_every_record_is_no_sign_because_equal_rewards_give_it() -> None:
    assert state("dpo_accuracy_below_chance", run_of({"rewards/accuracies": [0.0] * 8})) is State.ABSENT


def test_zero_where_the_margin_is_negative_is_every_pair_ranked_the_wrong_way_round() -> None:
    training = {"rewards/accuracies": [0.7, 0.9, 0.95, 0.95, 0.94, 0.95, 0.96, 0.95]}
    wrong = {"eval_rewards/accuracies": [0.0] * 6, "eval_rewards/margins": [0.0, -0.9, -1.9, -2.3, -2.4, -2.4]}
    assert state("dpo_accuracy_below_chance", run_of({**training, **wrong})) is State.PRESENT
    equal = {"eval_rewards/accuracies": [0.0] * 6, "eval_rewards/margins": [0.0] * 6}
    assert state("dpo_accuracy_below_chance", run_of({**training, **equal})) is State.ABSENT


def test_too_few_records_cannot_be_judged() -> None:
    assert state("dpo_accuracy_below_chance", run_of({"rewards/accuracies": [0.1, 0.1]})) is State.UNKNOWN


def test_a_reward_model_that_is_wrong_on_held_out_pairs_is_seen() -> None:
    margin, accuracy = [0.1, 0.8, 1.5, 2.2, 2.5, 3.0], [0.6, 0.8, 0.9, 0.9, 0.92, 0.95]
    run = run_of(margin=margin, accuracy=accuracy, eval_accuracy=[0.35, 0.2, 0.1, 0.1, 0.1, 0.1])
    assert state("dpo_accuracy_below_chance", run) is State.PRESENT
    assert (
        state("dpo_accuracy_below_chance", run_of(margin=margin, accuracy=accuracy, eval_accuracy=accuracy))
        is State.ABSENT
    )


def test_a_classifier_of_low_accuracy_is_not_judged() -> None:
    assert state("dpo_accuracy_below_chance", run_of(loss=[2.3] * 6, eval_accuracy=[0.1] * 6)) is State.UNKNOWN


def accuracies(end: float, pairs: int = 32, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    rate = 0.5 + (end - 0.5) * (1 - np.exp(-np.arange(100) / 20))
    return np.random.default_rng(seed).binomial(pairs, rate) / pairs


@pytest.mark.parametrize("seed", range(8))
def test_an_accuracy_that_stays_near_one_half_is_present(seed: int) -> None:
    assert state("dpo_accuracy_chance", run_of({"rewards/accuracies": accuracies(0.5, seed=seed)})) is State.PRESENT


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("end", [0.68, 0.8, 1.0])
def test_an_accuracy_that_rises_is_absent(end: float, seed: int) -> None:
    assert state("dpo_accuracy_chance", run_of({"rewards/accuracies": accuracies(end, seed=seed)})) is State.ABSENT


def test_the_first_steps_cannot_tell() -> None:
    assert state("dpo_accuracy_chance", run_of({"rewards/accuracies": [0.0, 0.5, 0.5] * 3})) is State.UNKNOWN


def test_without_accuracies_it_cannot_be_told() -> None:
    assert state("dpo_accuracy_chance", run_of({"rewards/margins": [0.0] * 30})) is State.UNKNOWN


def test_the_accuracy_of_a_reward_model_is_judged_too() -> None:
    guessing = {"accuracy": noisy([0.52] * 40, 0.1), "margin": noisy([0.01] * 40, 0.3)}
    assert state("dpo_accuracy_chance", run_of(guessing, kind="preference")) is State.PRESENT
    learnt = {"accuracy": np.linspace(0.5, 0.9, 40), "margin": np.linspace(0, 2, 40)}
    assert state("dpo_accuracy_chance", run_of(learnt, kind="preference")) is State.ABSENT
    assert state("dpo_margin_flat", run_of(learnt, kind="preference")) is State.ABSENT


def test_the_accuracy_of_a_classifier_is_another_one() -> None:
    assert state("dpo_accuracy_chance", run_of(accuracy=[0.5] * 40, kind="supervised")) is State.UNKNOWN
