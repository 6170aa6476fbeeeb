from __future__ import annotations

import re

import numpy as np

from mldebug_mcp.judge import diagnose
from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state


def test_steady_growth_to_a_multiple_is_present() -> None:
    finding = seen(
        "completion_length_grows",
        run_of({"completions/mean_length": noisy(np.linspace(150, 900, 100), 0.08)}, kind="grpo"),
    )
    assert finding.state is State.PRESENT
    assert 4 < (finding.values["factor"] or 0) < 8


def test_growth_by_two_thirds_is_present_where_it_ends_at_the_limit() -> None:
    lengths, config = (
        {"completions/mean_length": noisy(np.linspace(300, 500, 100), 0.05)},
        {"max_completion_length": 512},
    )
    assert state("completion_length_grows", run_of(lengths, config=config, kind="grpo")) is State.PRESENT
    assert state("completion_length_grows", run_of(lengths, kind="grpo")) is State.ABSENT


def test_lengths_that_wander_are_absent() -> None:
    wave = 300 + 120 * np.sin(np.linspace(0, 12, 200))
    assert (
        state("completion_length_grows", run_of({"completions/mean_length": noisy(wave, 0.1)}, kind="grpo"))
        is State.ABSENT
    )


def test_five_records_are_unknown() -> None:
    assert (
        state("completion_length_grows", run_of({"completions/mean_length": [100, 200, 400, 800, 900]}, kind="grpo"))
        is State.UNKNOWN
    )


def test_a_jump_up_early_on_that_is_never_lost_is_present() -> None:
    length = np.concatenate([np.full(8, 5.0), np.full(192, 12.0)])
    assert state("completion_length_grows", run_of(completion_length=length, kind="grpo")) is State.PRESENT


def test_growth_by_two_thirds_is_present_where_most_completions_are_cut_off_in_the_end() -> None:
    curves = {
        "completions/mean_length": noisy(np.linspace(300, 500, 100), 0.05),
        "completions/clipped_ratio": np.linspace(0.05, 0.95, 100),
    }
    assert state("completion_length_grows", run_of(curves, kind="grpo")) is State.PRESENT


def test_completions_that_grew_into_the_limit_are_no_sign_of_a_limit_that_was_too_low() -> None:
    length = np.concatenate([np.linspace(6, 12, 20), np.full(20, 12.0)])
    cut = np.concatenate([np.linspace(0.1, 0.95, 20), np.full(20, 0.97)])
    run = run_of(
        {"completions/mean_length": length, "completions/clipped_ratio": cut, "reward": length / 12}, kind="grpo"
    )
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


FALL = noisy(np.concatenate([np.full(50, 400.0), np.linspace(400, 12, 40), np.full(60, 12.0)]), 0.08)


def test_a_fall_to_a_stock_phrase_is_present_with_its_onset() -> None:
    finding = seen("completion_length_shrinks", run_of({"completions/mean_length": FALL}, kind="grpo"))
    assert finding.state is State.PRESENT
    assert 45 <= (finding.steps[0] or 0) <= 75


def test_a_policy_that_learns_to_end_is_absent() -> None:
    run = run_of({"completions/mean_length": FALL, "completions/clipped_ratio": [1.0] * 50 + [0.1] * 100}, kind="grpo")
    assert state("completion_length_shrinks", run) is State.ABSENT


def test_losing_half_of_the_words_is_absent() -> None:
    run = run_of({"completions/mean_length": noisy(np.linspace(400, 200, 100), 0.08)}, kind="grpo")
    assert state("completion_length_shrinks", run) is State.ABSENT


def test_five_records_do_not_tell_that_completions_shrink() -> None:
    assert (
        state("completion_length_shrinks", run_of({"completions/mean_length": [400, 200, 50, 9, 9]}, kind="grpo"))
        is State.UNKNOWN
    )


def test_nearly_all_completions_at_the_limit_are_present() -> None:
    assert (
        state("completions_truncated", run_of({"completions/clipped_ratio": [0.95] * 40}, kind="grpo")) is State.PRESENT
    )


def test_the_onset_is_where_they_reach_the_limit() -> None:
    finding = seen(
        "completions_reach_limit", run_of({"completions/clipped_ratio": [0.3] * 60 + [1.0] * 60}, kind="grpo")
    )
    assert finding.state is State.PRESENT
    assert finding.steps == [61]


def test_a_share_that_comes_down_for_good_is_absent() -> None:
    assert (
        state("completions_truncated", run_of({"completions/clipped_ratio": [0.95] * 20 + [0.2] * 60}, kind="grpo"))
        is State.ABSENT
    )


def test_single_records_are_absent() -> None:
    assert (
        state("completions_truncated", run_of({"completions/clipped_ratio": [0.2, 0.2, 1.0, 0.2] * 15}, kind="grpo"))
        is State.ABSENT
    )


def test_a_run_that_does_not_log_it_is_unknown() -> None:
    assert state("completions_truncated", run_of(reward=[0.1] * 40, kind="grpo")) is State.UNKNOWN


SHARE = "completions/clipped_ratio"


def test_completions_that_all_hit_the_limit_from_the_first_record_on_are_present() -> None:
    assert state("completions_never_end", run_of({SHARE: np.ones(40)}, kind="grpo")) is State.PRESENT


def test_a_limit_under_which_one_in_ten_ends_is_absent() -> None:
    assert state("completions_never_end", run_of({SHARE: np.full(40, 0.9)}, kind="grpo")) is State.ABSENT


def test_completions_that_grow_into_the_limit_are_absent() -> None:
    share = np.concatenate([np.linspace(0, 1, 10), np.ones(200)])
    assert state("completions_never_end", run_of({SHARE: share}, kind="grpo")) is State.UNKNOWN
    assert state("completions_reach_limit", run_of({SHARE: share}, kind="grpo")) is State.PRESENT


def test_what_the_reward_does_meanwhile_is_told() -> None:
    curves = {"completion_length": np.linspace(150, 900, 60), "reward": np.linspace(0.6, 0.2, 60)}
    summary = seen("completion_length_grows", run_of(curves, kind="grpo")).summary
    assert re.search(r"the reward goes from about 0\.\d+ to about 0\.2\d* meanwhile", summary)


def test_completions_that_grew_into_the_limit_count_once() -> None:
    curves = {"completion_length": np.linspace(150, 900, 60), "completions/clipped_ratio": np.linspace(0, 1, 60) ** 0.2}
    run = run_of(curves, kind="grpo")
    assert state("completion_length_grows", run) is State.PRESENT
    assert state("completions_truncated", run) is State.UNKNOWN


def test_an_excerpt_in_which_every_completion_ends_at_the_limit_is_present_and_one_in_which_some_end_is_unknown() -> (
    None
):
    assert state("completions_truncated", run_of({"completions/clipped_ratio": [1.0]}, kind="grpo")) is State.PRESENT
    assert state("completions_truncated", run_of({"completions/clipped_ratio": [0.9]}, kind="grpo")) is State.UNKNOWN


def test_a_short_log_shows_growth_to_the_longest_mean_that_comes_again_and_again() -> None:
    grown = [12.5, 20.5, 33.0, 38.9, 39.8, *[40.0] * 10]
    assert state("completion_length_grows", run_of(completion_length=grown, kind="grpo")) is State.PRESENT
    free = [12.5, 13.1, 12.8, 13.6, 14.1, 14.9, 15.2, 15.0, 15.8, 16.1, 15.9, 16.4, 16.2, 16.8, 17.1]
    assert state("completion_length_grows", run_of(completion_length=free, kind="grpo")) is State.ABSENT
