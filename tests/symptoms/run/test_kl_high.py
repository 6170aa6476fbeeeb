"""`kl_high`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state


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
