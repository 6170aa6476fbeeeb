from __future__ import annotations

from mldebug_mcp.models import State
from tests.runs import run_of, state

NAME = "dpo_accuracy_below_chance"


def test_accuracies_that_end_far_below_one_half_are_seen() -> None:
    assert state(NAME, run_of({"rewards/accuracies": [0.5, 0.4, 0.3, 0.2, 0.1, 0.1, 0.1, 0.12]})) is State.PRESENT
    assert state(NAME, run_of({"eval_rewards/accuracies": [0.3, 0.1, 0.06, 0.05, 0.05]})) is State.PRESENT


def test_accuracies_near_one_half_are_not() -> None:
    assert state(NAME, run_of({"rewards/accuracies": [0.5, 0.47, 0.52, 0.49, 0.45, 0.5]})) is State.ABSENT


def test_zero_in_every_record_is_no_sign_because_equal_rewards_give_it() -> None:
    assert state(NAME, run_of({"rewards/accuracies": [0.0] * 8})) is State.ABSENT


def test_too_few_records_cannot_be_judged() -> None:
    assert state(NAME, run_of({"rewards/accuracies": [0.1, 0.1]})) is State.UNKNOWN


def test_a_reward_model_that_is_wrong_on_held_out_pairs_is_seen() -> None:
    margin, accuracy = [0.1, 0.8, 1.5, 2.2, 2.5, 3.0], [0.6, 0.8, 0.9, 0.9, 0.92, 0.95]
    run = run_of(margin=margin, accuracy=accuracy, eval_accuracy=[0.35, 0.2, 0.1, 0.1, 0.1, 0.1])
    assert state(NAME, run) is State.PRESENT
    assert state(NAME, run_of(margin=margin, accuracy=accuracy, eval_accuracy=accuracy)) is State.ABSENT


def test_a_classifier_of_low_accuracy_is_not_judged() -> None:
    assert state(NAME, run_of(loss=[2.3] * 6, eval_accuracy=[0.1] * 6)) is State.UNKNOWN
