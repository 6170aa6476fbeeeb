from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state


def of_scores(score: NDArray[np.float64], reward: NDArray[np.float64]) -> Run:
    every = len(reward) // len(score)
    return run_of(
        {"eval_reward": {every * (place + 1): float(value) for place, value in enumerate(score)}},
        reward=noisy(reward, 0.02),
        kind="grpo",
    )


def test_a_score_that_falls_while_the_reward_rises_is_present_from_where_it_falls() -> None:
    score = np.concatenate([np.linspace(0.4, 0.5, 6), np.linspace(0.48, 0.2, 9)])
    found = seen("eval_reward_falls", of_scores(score, np.linspace(0.3, 0.9, 150)))
    assert found.state is State.PRESENT
    assert 50 <= found.steps[0] <= 100


def test_it_is_present_from_its_best_and_both_values_are_of_that_step() -> None:
    score = np.concatenate([1.3 - 0.6 * np.exp(-np.arange(10) / 3), 1.27 - 0.006 * np.arange(1, 21) ** 2])
    found = seen("eval_reward_falls", of_scores(score, 3 - 2.8 * np.exp(-np.arange(300) / 80)))
    assert 100 <= found.steps[0] <= 140
    assert found.values["reward_at_onset"] == pytest.approx(2.4, abs=0.25)


def test_a_score_that_rises_with_the_reward_is_absent() -> None:
    assert state("eval_reward_falls", of_scores(np.linspace(0.3, 0.6, 15), np.linspace(0.3, 0.9, 150))) is State.ABSENT


def test_a_score_that_falls_with_the_reward_is_absent() -> None:
    run = of_scores(np.linspace(0.6, 0.2, 15), np.linspace(0.9, 0.3, 150))
    assert state("eval_reward_falls", run) is State.ABSENT


def test_one_lucky_evaluation_is_absent() -> None:
    score = 0.4 + 0.03 * np.random.default_rng(0).standard_normal(15)
    score[4] = 0.65
    assert state("eval_reward_falls", of_scores(score, np.linspace(0.3, 0.9, 150))) is State.ABSENT


def test_a_few_evaluations_cannot_tell() -> None:
    run = of_scores(np.array([0.5, 0.3, 0.2]), np.linspace(0.3, 0.9, 150))
    assert state("eval_reward_falls", run) is State.UNKNOWN


def test_without_evaluations_a_score_beside_the_reward_is_looked_at() -> None:
    rises = noisy(np.linspace(0.1, 0.9, 120), 0.02)
    falls = run_of({"task_score": noisy(np.linspace(0.5, 0.1, 120), 0.02)}, reward=rises, kind="grpo")
    assert state("eval_reward_falls", falls) is State.PRESENT
    follows = run_of({"task_score": noisy(np.linspace(0.1, 0.5, 120), 0.02)}, reward=rises, kind="grpo")
    assert state("eval_reward_falls", follows) is State.ABSENT


@pytest.mark.parametrize(("name", "score", "expected"), [
    ("gold_reward", np.linspace(1.2, -2.0, 8), State.PRESENT),
    ("oracle_score", np.linspace(0.9, 0.2, 8), State.PRESENT),
    ("judge_score", np.array([0.23, -0.54, -0.55, -0.66, -0.66, -0.7]), State.PRESENT),  # most of it at once
    ("gold_reward", np.linspace(0.4, 1.2, 8), State.ABSENT),
    ("judge_score", np.array([0.6, 0.41, 0.42, 0.39, 0.43, 0.41]), State.ABSENT),  # one lucky evaluation
])  # fmt: skip
def test_what_people_or_a_judge_score_answers_by_falls_in_any_unit_whatever_other_rewards_do(
    name: str, score: NDArray[np.float64], expected: State
) -> None:
    rises = np.linspace(0.3, 0.9, 150)
    evaluated = {name: score, "eval_reward": np.linspace(0.35, 0.95, len(score))}
    at = np.arange(1, len(score) + 1) * (150 // len(score))
    run = run_of(
        {each: dict(zip(at.tolist(), values.tolist(), strict=True)) for each, values in evaluated.items()},
        reward=noisy(rises, 0.02),
        kind="grpo",
    )
    assert state("eval_reward_falls", run) is expected


def test_a_success_that_never_comes_while_the_reward_has_come_to_rest_is_present() -> None:
    paid = noisy(np.minimum(np.linspace(1, 60, 150), 30), 0.01)
    assert state("eval_reward_falls", run_of(success_rate=[0.0] * 150, reward=paid, kind="rl")) is State.PRESENT
    late = [0.0] * 100 + [0.5] * 50
    assert state("eval_reward_falls", run_of(success_rate=late, reward=paid, kind="rl")) is not State.PRESENT
    rises = noisy(np.linspace(1, 30, 150), 0.01)
    assert state("eval_reward_falls", run_of(success_rate=[0.0] * 150, reward=rises, kind="rl")) is not State.PRESENT
