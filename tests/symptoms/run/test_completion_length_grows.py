"""`completion_length_grows`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.diagnose import diagnose
from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state

NAME = "completions/mean_length"


def test_steady_growth_to_a_multiple_is_present() -> None:
    finding = seen("completion_length_grows", run_of({NAME: noisy(np.linspace(150, 900, 100), 0.08)}, kind="grpo"))
    assert finding.state is State.PRESENT
    assert 4 < (finding.values["factor"] or 0) < 8


def test_growth_by_two_thirds_is_present_where_it_ends_at_the_limit() -> None:
    lengths, config = {NAME: noisy(np.linspace(300, 500, 100), 0.05)}, {"max_completion_length": 512}
    assert state("completion_length_grows", run_of(lengths, config=config, kind="grpo")) is State.PRESENT
    assert state("completion_length_grows", run_of(lengths, kind="grpo")) is State.ABSENT


def test_lengths_that_wander_are_absent() -> None:
    wave = 300 + 120 * np.sin(np.linspace(0, 12, 200))
    assert state("completion_length_grows", run_of({NAME: noisy(wave, 0.1)}, kind="grpo")) is State.ABSENT


def test_five_records_are_unknown() -> None:
    assert state("completion_length_grows", run_of({NAME: [100, 200, 400, 800, 900]}, kind="grpo")) is State.UNKNOWN


def test_a_jump_up_early_on_that_is_never_lost_is_present() -> None:
    length = np.concatenate([np.full(8, 5.0), np.full(192, 12.0)])
    assert state("completion_length_grows", run_of(completion_length=length, kind="grpo")) is State.PRESENT


def test_growth_by_two_thirds_is_present_where_most_completions_are_cut_off_in_the_end() -> None:
    curves = {NAME: noisy(np.linspace(300, 500, 100), 0.05), "completions/clipped_ratio": np.linspace(0.05, 0.95, 100)}
    assert state("completion_length_grows", run_of(curves, kind="grpo")) is State.PRESENT


def test_completions_that_grew_into_the_limit_are_no_sign_of_a_limit_that_was_too_low() -> None:
    length = np.concatenate([np.linspace(6, 12, 20), np.full(20, 12.0)])
    cut = np.concatenate([np.linspace(0.1, 0.95, 20), np.full(20, 0.97)])
    run = run_of({NAME: length, "completions/clipped_ratio": cut, "reward": length / 12}, kind="grpo")
    ranked = [one.cause for one in diagnose(run).hypotheses]
    assert ranked.index("length_exploitation") < ranked.index("completion_limit_low")


def test_growth_far_from_the_limit_is_a_remark_where_scores_of_evaluation_rise_with_it() -> None:
    length = np.linspace(900, 2100, 100)
    share = {"completions/clipped_ratio": np.full(100, 0.05)}
    scores = np.linspace(0.2, 0.5, 10)
    grows = {"eval_reward": {10 * (place + 1): float(score) for place, score in enumerate(scores)}}
    stays = {"eval_reward": {10 * (place + 1): 0.3 for place in range(10)}}
    assert state("completion_length_grows", run_of({**share, **grows}, completion_length=length, kind="grpo")) is (
        State.ABSENT
    )
    assert state("completion_length_grows", run_of({**share, **stays}, completion_length=length, kind="grpo")) is (
        State.PRESENT
    )
    assert state("completion_length_grows", run_of(share, completion_length=length, kind="grpo")) is State.PRESENT


def test_growth_while_the_reward_rises_near_the_reference_is_a_remark() -> None:
    metrics = {"completions/clipped_ratio": np.full(100, 0.05), "kl": np.linspace(0.0, 0.05, 100)}
    length = np.linspace(220, 560, 100)
    learns = run_of(metrics, completion_length=length, reward=np.linspace(0.2, 0.7, 100), kind="grpo")
    stands = run_of(metrics, completion_length=length, reward=np.full(100, 0.3), kind="grpo")
    assert state("completion_length_grows", learns) is State.ABSENT
    assert state("completion_length_grows", stands) is State.PRESENT
