from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state


def test_a_lasting_share_above_three_tenths_is_present() -> None:
    assert (
        state("clip_ratio_high", run_of({"clip_ratio/region_mean": [0.05] * 30 + [0.5] * 20}, kind="grpo"))
        is State.PRESENT
    )


def test_a_single_record_is_absent() -> None:
    assert (
        state("clip_ratio_high", run_of({"clip_ratio/region_mean": [0.05] * 30 + [0.6] + [0.05] * 30}, kind="grpo"))
        is State.ABSENT
    )


def test_four_tenths_are_within_what_small_agents_learn_with() -> None:
    assert state("clip_ratio_high", run_of({"train/clip_fraction": noisy([0.4] * 40, 0.05)}, kind="rl")) is State.ABSENT


def test_a_run_that_does_not_log_it_is_unknown() -> None:
    assert state("clip_ratio_high", run_of(reward=[0.1] * 40, kind="grpo")) is State.UNKNOWN


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


def test_without_ratios_it_is_unknown() -> None:
    assert state("importance_ratio_off", run_of(reward=[0.1] * 40, kind="grpo")) is State.UNKNOWN


def test_a_mean_ratio_between_sampling_and_training_far_from_one_is_present() -> None:
    name = "sampling/importance_sampling_ratio/mean"
    assert state("importance_ratio_off", run_of({name: np.full(30, 0.4)})) is State.PRESENT
    assert state("importance_ratio_off", run_of({name: np.full(30, 0.97)})) is State.ABSENT


def test_a_ratio_far_from_one_counts_once_where_it_is_clipped_too() -> None:
    run = run_of({LEAST: np.full(40, 0.0005), "clip_ratio/region_mean": np.full(40, 0.6)}, kind="grpo")
    assert state("importance_ratio_off", run) is State.PRESENT
    assert state("clip_ratio_high", run) is State.UNKNOWN
