from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import run_of, state


def of_rewards(chosen: float, rejected: float) -> Run:
    scatter = 0.02 * np.random.default_rng(0).standard_normal((2, 80))
    return run_of(
        {
            "rewards/chosen": np.linspace(0, chosen, 80) + scatter[0],
            "rewards/rejected": np.linspace(0, rejected, 80) + scatter[1],
        },
        config={"beta": 0.1},
        kind="preference",
    )


@pytest.mark.parametrize(
    ("chosen", "rejected", "answer"),
    [
        (-14.0, -14.5, State.PRESENT),
        (-14.0, -24.0, State.ABSENT),  # they move apart as they fall
        (-2.0, -2.1, State.ABSENT),  # 20 nats: much of the chosen answers is left
        (0.3, -0.5, State.ABSENT),
    ],
)
def test_a_fall_is_held_against_what_the_margin_gains(chosen: float, rejected: float, answer: State) -> None:
    assert state("dpo_fall_outruns_margin", of_rewards(chosen, rejected)) is answer


def test_without_rewards_it_cannot_be_told() -> None:
    assert state("dpo_fall_outruns_margin", run_of(loss=[0.69] * 20, kind="preference")) is State.UNKNOWN
