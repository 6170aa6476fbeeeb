"""`importance_ratio_off`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state

LEAST = "sampling/importance_sampling_ratio/min"
DIFFERENCE = "sampling/sampling_logp_difference/mean"


def test_a_least_ratio_near_zero_is_present() -> None:
    assert state("importance_ratio_off", run_of({LEAST: [0.5] * 20 + [0.0005] * 20}, kind="grpo")) is State.PRESENT


def test_a_difference_of_log_probabilities_above_one_is_present() -> None:
    finding = seen("importance_ratio_off", run_of({DIFFERENCE: np.linspace(0.02, 3, 60)}, kind="grpo"))
    assert finding.state is State.PRESENT
    assert DIFFERENCE in finding.summary


def test_a_ratio_of_two_is_present_and_one_near_one_is_absent() -> None:
    assert state("importance_ratio_off", run_of({"val/ratio": [2.6] * 20}, kind="ppo")) is State.PRESENT
    assert state("importance_ratio_off", run_of({"val/ratio": noisy([1.0] * 20, 0.05)}, kind="ppo")) is State.ABSENT


def test_single_records_are_absent() -> None:
    assert state("importance_ratio_off", run_of({LEAST: [0.4, 0.4, 0.001, 0.4] * 9}, kind="grpo")) is State.ABSENT


def test_a_run_that_does_not_log_it_is_unknown() -> None:
    assert state("importance_ratio_off", run_of(reward=[0.1] * 40, kind="grpo")) is State.UNKNOWN


def test_a_mean_ratio_between_sampling_and_training_far_from_one_is_present() -> None:
    name = "sampling/importance_sampling_ratio/mean"
    assert state("importance_ratio_off", run_of({name: np.full(30, 0.4)})) is State.PRESENT
    assert state("importance_ratio_off", run_of({name: np.full(30, 0.97)})) is State.ABSENT
