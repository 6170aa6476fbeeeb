from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import run_of, state

SHARE = "completions/clipped_ratio"


def test_completions_that_all_hit_the_limit_from_the_first_record_on_are_present() -> None:
    assert state("completions_never_end", run_of({SHARE: np.ones(40)}, kind="grpo")) is State.PRESENT


def test_a_limit_under_which_one_in_ten_ends_is_absent() -> None:
    assert state("completions_never_end", run_of({SHARE: np.full(40, 0.9)}, kind="grpo")) is State.ABSENT


def test_completions_that_grow_into_the_limit_are_absent() -> None:
    share = np.concatenate([np.linspace(0, 1, 10), np.ones(200)])
    assert state("completions_never_end", run_of({SHARE: share}, kind="grpo")) is State.ABSENT
