from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.logs.run import Run
from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.models import State
from tests.runs import Curve, noisy, run_of, seen, state


def drift(end: float, size: float = 0.05, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.linspace(0, end, 100) + size * np.random.default_rng(seed).standard_normal(100)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("end", [0.0, 0.01, -0.3])
def test_a_margin_that_does_not_grow_is_present(end: float, seed: int) -> None:
    assert state("dpo_margin_flat", run_of({"rewards/margins": drift(end, seed=seed)})) is State.PRESENT


@pytest.mark.parametrize("seed", range(5))
def test_a_margin_that_grows_is_absent(seed: int) -> None:
    assert state("dpo_margin_flat", run_of({"rewards/margins": drift(0.6, 0.2, seed)})) is State.ABSENT


def test_small_margins_of_a_small_beta_are_absent() -> None:
    run = run_of({"rewards/margins": drift(0.05, 0.005)}, config={"beta": 0.01})
    assert state("dpo_margin_flat", run) is State.ABSENT


def test_small_margins_that_tell_the_pairs_apart_are_absent() -> None:
    run = run_of({"rewards/margins": drift(0.05, 0.005), "rewards/accuracies": np.linspace(0.5, 0.8, 100)})
    assert state("dpo_margin_flat", run) is State.ABSENT


def test_the_first_steps_cannot_tell() -> None:
    assert state("dpo_margin_flat", run_of({"rewards/margins": [0.0] * 10})) is State.UNKNOWN


STEPS = np.arange(1, 61)


def rewarded(chosen: Curve, rejected: Curve, **config: Scalar) -> Run:
    return run_of({"rewards/chosen": chosen, "rewards/rejected": rejected}, config=config, kind="preference")


def test_rewards_that_are_zero_in_every_record_are_present() -> None:
    finding = seen("dpo_rewards_zero", rewarded(np.zeros(60), np.zeros(60)))
    assert finding.state is State.PRESENT
    assert state("dpo_margin_flat", rewarded(np.zeros(60), np.zeros(60))) is State.UNKNOWN


def test_three_records_of_zero_over_hundreds_of_steps_need_more_of_them() -> None:
    few = run_of({"rewards/chosen": [0.0] * 3, "rewards/rejected": [0.0] * 3}, every=100, kind="preference")
    more = run_of({"rewards/chosen": [0.0] * 7, "rewards/rejected": [0.0] * 7}, every=100, kind="preference")
    assert state("dpo_rewards_zero", few) is State.ABSENT
    assert state("dpo_rewards_zero", more) is State.PRESENT


@pytest.mark.parametrize(
    ("chosen", "rejected"),
    [
        ([0.0] * 12, [0.0] * 12),  # the first steps
        ([0.0] * 30 + [0.02] * 30, [0.0] * 30 + [-0.02] * 30),  # a long warm-up
        (1e-4 * STEPS, -1e-4 * STEPS),  # a tiny rate
        ([-0.4] * 60, [-0.5] * 60),  # ORPO, whose rewards are no log-ratios
    ],
    ids=["first steps", "warm-up", "tiny rate", "no reference"],
)
def test_rewards_that_move_or_are_young_are_neither_zero_nor_alike(chosen: Curve, rejected: Curve) -> None:
    assert state("dpo_rewards_zero", rewarded(chosen, rejected)) is not State.PRESENT  # the margin may be flat instead
    assert state("dpo_pairs_alike", rewarded(chosen, rejected)) is not State.PRESENT


@pytest.mark.parametrize("count", [1, 40])
def test_equal_log_probabilities_are_present_from_the_first_record_on(count: int) -> None:
    logps = noisy(np.full(count, -180.0), 0.05)
    run = run_of({"logps/chosen": logps, "logps/rejected": logps}, kind="preference")
    assert seen("dpo_pairs_alike", run).values["share"] == 1.0


def test_rewards_that_move_together_to_within_a_three_hundredth_are_present() -> None:
    chosen = noisy(np.linspace(0, -3, 60), 0.05)
    assert state("dpo_pairs_alike", rewarded(chosen, 1.002 * chosen)) is State.PRESENT


@pytest.mark.parametrize("seed", range(5))
def test_answers_that_fall_together_or_have_like_lengths_are_not_alike(seed: int) -> None:
    draw = np.random.default_rng(seed)
    fall = rewarded(np.linspace(0, -14, 60) + 0.3 * draw.standard_normal(60), np.linspace(0, -14.5, 60))
    assert state("dpo_pairs_alike", fall) is State.ABSENT
    logps = -200 + draw.standard_normal((2, 60))
    run = run_of({"logps/chosen": logps[0], "logps/rejected": logps[1]}, kind="preference")
    assert state("dpo_pairs_alike", run) is State.ABSENT


def test_equal_pairs_have_no_margin_that_could_be_flat() -> None:
    logps = noisy([-180.0] * 60, 0.05)
    run = run_of({"logps/chosen": logps, "logps/rejected": logps, "rewards/margins": [0.0] * 60}, kind="preference")
    assert state("dpo_pairs_alike", run) is State.PRESENT
    assert state("dpo_margin_flat", run) is State.UNKNOWN


@pytest.mark.parametrize(("gain", "expected"), [(0.0, State.PRESENT), (1.5, State.ABSENT)])
def test_a_margin_that_is_not_logged_is_the_difference_of_the_rewards(gain: float, expected: State) -> None:
    noise = np.random.default_rng(0).normal(0, 0.01, (2, 60))
    falls = np.linspace(0, -1, 60)
    run = run_of({"rewards/chosen": falls + np.linspace(0, gain, 60) + noise[0], "rewards/rejected": falls + noise[1]})
    assert state("dpo_margin_flat", run) is expected
