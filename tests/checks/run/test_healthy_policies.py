"""Policies with nothing wrong set off nothing, in more than 98 of 100 runs."""

from __future__ import annotations

from collections import Counter

import pytest

from mldebug_mcp.checks import examine
from mldebug_mcp.models import State
from tests.checks.run.healthy_policies import KINDS

JUDGED = (
    "reward_flat", "reward_zero", "reward_std_zero", "reward_falls", "kl_high", "entropy_low", "entropy_high",
    "clip_ratio_high", "completion_length_grows", "completions_truncated", "importance_ratio_off", "value_loss_high",
    "step_time_grows", "step_time_spikes", "memory_grows", "log_stops", "error_message",
    "reward_constant", "reward_at_floor", "no_variance_in_excerpt",
    "policy_stands_still", "entropy_grows", "completion_length_shrinks", "completions_never_end",
    "explained_variance_low", "q_values_beyond_returns",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_no_symptom_is_seen_in_more_than_one_of_fifty_healthy_policies(kind: str) -> None:
    seen: Counter[str] = Counter()
    for seed in range(1000, 1050):
        findings, broken = examine(KINDS[kind](seed))
        assert broken == []
        seen.update(one.symptom for one in findings if one.state is State.PRESENT and one.symptom in JUDGED)
    assert {symptom: count for symptom, count in seen.items() if count > 1} == {}
