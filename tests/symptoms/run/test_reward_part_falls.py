from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state

NAME = "reward_part_falls"
RISES = np.linspace(0.1, 1.0, 60)


def added(judge: Floats, other: Floats, size: float = 0.05) -> Run:
    parts = noisy(judge, size), noisy(other, size, 1)
    total = np.sum(parts, axis=0)
    return run_of({"rewards/judge/mean": parts[0], "rewards/right/mean": parts[1], "reward": total}, kind="grpo")


def test_a_part_that_is_given_up_while_the_total_rises_is_present() -> None:
    finding = seen(NAME, added(RISES, np.linspace(0.4, 0.05, 60)))
    assert finding.state is State.PRESENT
    assert "rewards/right/mean" in finding.summary


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("judge", "other"),
    [
        (RISES, RISES),
        (RISES, np.full(60, 0.4)),
        (RISES, np.linspace(0.4, 0.3, 60)),
        (RISES, np.linspace(-0.1, -0.5, 60)),  # the price of longer answers
        (RISES, np.linspace(0.02, 0.0, 60)),  # a detail
        (RISES, np.concatenate([np.full(20, 0.4), np.full(20, 0.1), np.full(20, 0.4)])),
        (np.linspace(0.6, 0.1, 60), np.linspace(0.4, 0.1, 60)),  # the total falls too
    ],
    ids=["together", "level", "a little", "price", "detail", "comes back", "all fall"],
)
def test_parts_that_go_together_or_lose_little_are_absent(judge: Floats, other: Floats, seed: int) -> None:
    assert state(NAME, added(judge, other, 0.03 + 0.02 * seed)) is State.ABSENT


def test_a_single_part_or_few_records_cannot_tell() -> None:
    one = run_of({"rewards/judge/mean": RISES, "reward": RISES}, kind="grpo")
    assert state(NAME, one) is State.UNKNOWN
    assert state(NAME, added(RISES[:8], RISES[:8])) is State.UNKNOWN
