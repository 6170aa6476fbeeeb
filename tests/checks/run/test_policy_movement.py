from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp import diagnose_run
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state


def test_kl_that_runs_away_is_present_from_where_it_begins_to_rise() -> None:
    kl = np.concatenate([np.full(50, 0.03), 0.03 * np.exp(np.linspace(0, 6, 50))])
    finding = seen("kl_high", run_of(kl=noisy(kl, 0.2), kind="grpo"))
    assert finding.state is State.PRESENT
    assert 45 <= (finding.steps[0] or 0) <= 62
    assert 82 <= (finding.steps[1] or 0) <= 90


def test_a_single_jump_of_kl_to_the_reference_is_a_remark() -> None:
    finding = seen("kl_high", run_of(kl=[0.05] * 30 + [80.0] + [0.05] * 30, kind="grpo"))
    assert finding.state is State.ABSENT
    assert finding.steps == [31]


def test_kl_that_grows_slowly_to_a_tenth_is_absent() -> None:
    assert state("kl_high", run_of(kl=noisy(np.linspace(0, 0.1, 100), 0.3), kind="grpo")) is State.ABSENT


def test_kl_summed_over_tokens_near_its_target_is_absent() -> None:
    assert state("kl_high", run_of(kl=noisy([8.0] * 60, 0.3), kind="ppo")) is State.ABSENT


def test_a_single_update_that_is_far_too_large_is_present() -> None:
    run = run_of({"train/approx_kl": [0.02] * 18 + [0.43] + [0.02] * 6}, kind="rl")
    assert state("kl_high", run) is State.PRESENT


def test_updates_of_a_hundredth_are_absent() -> None:
    assert state("kl_high", run_of({"train/approx_kl": noisy([0.015] * 50, 0.5)}, kind="rl")) is State.ABSENT


def test_the_kl_of_an_autoencoder_is_unknown() -> None:
    assert state("kl_high", run_of(kl=[20.0] * 30, loss=[1.0] * 30)) is State.UNKNOWN


def test_a_divergence_of_exactly_zero_in_every_record_is_seen() -> None:
    assert (
        state("policy_stands_still", run_of(kl=[0.0] * 20, clip_ratio=[0.0] * 20, reward=[1.0] * 20, kind="grpo"))
        is State.PRESENT
    )


def test_a_policy_that_moves_a_little_is_not() -> None:
    assert state("policy_stands_still", run_of(kl=[0.0, *[1e-5] * 19], reward=[1.0] * 20, kind="grpo")) is State.ABSENT


def test_clipping_alone_cannot_tell() -> None:
    assert state("policy_stands_still", run_of(clip_ratio=[0.0] * 20, reward=[1.0] * 20, kind="grpo")) is State.UNKNOWN


def test_what_rounding_leaves_of_two_equal_policies_is_seen_and_told() -> None:
    finding = seen(
        "policy_stands_still", run_of(approx_kl=[1e-9, 3e-8] * 10, clip_ratio=[0.0] * 20, reward=[20.0] * 20, kind="rl")
    )
    assert finding.state is State.PRESENT
    assert "at most 3e-08" in finding.summary


def test_a_policy_whose_entropy_falls_moves_whatever_divergence_is_logged() -> None:
    run = run_of(kl=[0.0] * 40, entropy=noisy(decay(40, 1.4, 0.1), 0.01), reward=[5.0] * 40, kind="rl")
    assert state("policy_stands_still", run) is State.UNKNOWN


def test_a_policy_that_earns_more_and_more_moves_whatever_divergence_is_logged() -> None:
    run = run_of(approx_kl=[0.0] * 40, reward=noisy(np.linspace(20, 200, 40), 0.05), kind="rl")
    assert state("policy_stands_still", run) is State.UNKNOWN


def test_noise_in_the_entropy_of_a_fixed_policy_is_no_movement() -> None:
    run = run_of(kl=[0.0] * 40, entropy=noisy([1.4] * 40, 0.05), reward=noisy([20.0] * 40, 0.1), kind="rl")
    assert state("policy_stands_still", run) is State.PRESENT


def test_a_divergence_of_a_thousand_is_told_from_one_record() -> None:
    assert state("kl_high", run_of(kl=[1200.0], reward=[0.4], kind="grpo")) is State.PRESENT
    assert state("kl_high", run_of(kl=[3.0], reward=[0.4], kind="grpo")) is State.UNKNOWN


def test_what_a_divergence_costs_is_told_where_its_coefficient_is_set() -> None:
    run = run_of(kl=np.linspace(0, 20, 60), reward=[0.4] * 60, config={"beta": 0.05}, kind="grpo")
    assert seen("kl_high", run).values["cost"] == pytest.approx(1.0)


def test_a_few_records_in_which_a_policy_first_learns_do_not_make_the_share_high() -> None:
    ratio = np.zeros(28)
    ratio[3:6] = 0.7
    assert state("clip_ratio_high", run_of(clip_ratio=ratio, reward=np.linspace(0, 1, 28), kind="rl")) is State.ABSENT


@pytest.mark.parametrize(("times", "expected"), [(3.0, State.ABSENT), (40.0, State.PRESENT)])
def test_a_divergence_that_comes_to_many_times_what_is_too_large_runs_away(times: float, expected: State) -> None:
    limit = seen("kl_high", run_of(kl=np.geomspace(0.01, 1e4, 60), kind="grpo")).values["limit"]
    assert limit is not None
    run = run_of(kl=np.geomspace(0.01, times * limit, 60), kind="grpo")
    assert state("kl_high", run) is State.PRESENT
    assert state("kl_runs_away", run) is expected


def test_a_kl_to_the_reference_that_grows_before_the_ratio_is_off_is_a_symptom_too(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    growth = np.exp(np.linspace(0, np.log(245), 100))
    records = [
        {
            "objective/kl": 0.2 * factor,
            "objective/entropy": 60 - 0.4 * at,
            "objective/scores": 0.5 + 0.08 * at,
            "policy/approxkl_avg": 0.01 * factor,
            "loss/policy_avg": -0.01,
            "loss/value_avg": 0.3,
            "val/ratio": 1 + 0.01 * factor,
            "lr": 3e-06,
            "episode": 512 * at,
        }
        for at, factor in enumerate(growth)
    ]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    answer = diagnose_run(path)
    present = {finding.symptom: finding for finding in answer.findings if finding.state is State.PRESENT}
    assert {"kl_high", "importance_ratio_off"} <= present.keys()
    assert (present["kl_high"].steps[0] or 0) < (present["importance_ratio_off"].steps[0] or 0)
    assert "ends at 49" in present["kl_high"].summary
    shares = {hypothesis.cause: hypothesis.probability for hypothesis in answer.hypotheses}
    assert answer.hypotheses[0].cause == "kl_blowup"
    assert 0.1 < shares["off_policy_staleness"] < shares["kl_blowup"]


def test_a_kl_that_follows_a_ratio_that_was_off_before_is_no_symptom_of_its_own() -> None:
    kl = np.concatenate([np.full(60, 0.03), np.linspace(0.03, 9, 40)])
    run = run_of({"kl": kl, "sampling/importance_sampling_ratio/mean": np.full(100, 3.0)}, kind="grpo")
    assert state("importance_ratio_off", run) is State.PRESENT
    assert state("kl_high", run) is State.UNKNOWN
