from __future__ import annotations

import pytest

from mldebug_mcp.models import State
from tests.runs import run_of, seen, state

NAME = "no_variance_in_excerpt"


@pytest.mark.parametrize("metrics", [{"frac_reward_zero_std": [1.0]}, {"reward_std": [0.0, 0.0, 0.0]}])
def test_a_few_records_without_any_variance_are_present(metrics: dict[str, list[float]]) -> None:
    finding = seen(NAME, run_of(metrics, kind="grpo"))
    assert finding.values["records"] == len(next(iter(metrics.values())))


@pytest.mark.parametrize("metrics", [{"frac_reward_zero_std": [0.3]}, {"reward_std": [0.0, 0.2, 0.0]}])
def test_a_few_records_with_some_variance_are_absent(metrics: dict[str, list[float]]) -> None:
    assert state(NAME, run_of(metrics, kind="grpo")) is State.ABSENT


def test_of_a_whole_log_another_symptom_tells() -> None:
    run = run_of({"frac_reward_zero_std": [1.0] * 20}, kind="grpo")
    assert state(NAME, run) is State.UNKNOWN
    assert state("reward_std_zero", run) is State.PRESENT
