"""`entropy_grows`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state


def test_entropy_that_turns_round_and_grows_is_present() -> None:
    entropy = np.concatenate([decay(50, 0.5, 0.2), np.linspace(0.2, 2.5, 50)])
    finding = seen("entropy_grows", run_of(entropy=noisy(entropy, 0.05), kind="grpo"))
    assert finding.state is State.PRESENT
    assert finding.steps[0] >= 45


def test_entropy_that_stays_as_high_as_it_began_is_absent() -> None:
    run = run_of(entropy=noisy([1.6] * 60, 0.05), kind="grpo")
    assert state("entropy_grows", run) is State.ABSENT
    assert state("entropy_high", run) is State.PRESENT


def test_entropy_that_comes_down_is_absent() -> None:
    assert state("entropy_grows", run_of(entropy=noisy(decay(60, 2.0, 0.3), 0.05), kind="grpo")) is State.ABSENT


def test_a_few_records_are_unknown() -> None:
    assert state("entropy_grows", run_of(entropy=[0.5, 1.0, 2.0] * 3, kind="grpo")) is State.UNKNOWN
