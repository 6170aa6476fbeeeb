"""`completion_length_shrinks`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state

NAME = "completions/mean_length"
FALL = noisy(np.concatenate([np.full(50, 400.0), np.linspace(400, 12, 40), np.full(60, 12.0)]), 0.08)


def test_a_fall_to_a_stock_phrase_is_present_with_its_onset() -> None:
    finding = seen("completion_length_shrinks", run_of({NAME: FALL}, kind="grpo"))
    assert finding.state is State.PRESENT
    assert 45 <= (finding.steps[0] or 0) <= 75


def test_a_policy_that_learns_to_end_is_absent() -> None:
    run = run_of({NAME: FALL, "completions/clipped_ratio": [1.0] * 50 + [0.1] * 100}, kind="grpo")
    assert state("completion_length_shrinks", run) is State.ABSENT


def test_losing_half_of_the_words_is_absent() -> None:
    run = run_of({NAME: noisy(np.linspace(400, 200, 100), 0.08)}, kind="grpo")
    assert state("completion_length_shrinks", run) is State.ABSENT


def test_five_records_are_unknown() -> None:
    assert state("completion_length_shrinks", run_of({NAME: [400, 200, 50, 9, 9]}, kind="grpo")) is State.UNKNOWN
