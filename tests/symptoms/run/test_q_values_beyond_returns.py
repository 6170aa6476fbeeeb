from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state

NAME = "q_values_beyond_returns"
RETURNS = noisy(decay(60, 20, 200), 0.05)


@pytest.mark.parametrize("name", ["losses/q_values", "losses/qf1_values", "AverageQ1Vals", "mean_q"])
def test_values_of_thousands_where_episodes_bring_two_hundred_are_present(name: str) -> None:
    finding = seen(NAME, run_of({name: decay(60, 1, 6000)}, reward=RETURNS, kind="rl"))
    assert finding.state is State.PRESENT
    assert finding.values["largest_return"] == pytest.approx(200, rel=0.15)


@pytest.mark.parametrize("values", [decay(60, 1, 100), decay(60, 1, -900), [*[9e3] * 20, *[150.0] * 40]])
def test_values_about_as_large_as_returns_or_that_come_back_are_absent(values: list[float]) -> None:
    assert state(NAME, run_of({"losses/q_values": values}, reward=RETURNS, kind="rl")) is State.ABSENT


def test_without_values_or_with_few_it_cannot_be_told() -> None:
    assert state(NAME, run_of(reward=RETURNS, kind="rl")) is State.UNKNOWN
    few = {10: 1e4, 20: 1e4}
    assert state(NAME, run_of({"losses/q_values": few}, reward=RETURNS, kind="rl")) is State.UNKNOWN


def test_returns_below_zero_are_measured_by_their_size() -> None:
    assert state(NAME, run_of({"losses/q_values": decay(60, 0, -300)}, reward=-RETURNS, kind="rl")) is State.ABSENT
    values = {"losses/q_values": decay(60, 0, -1e5)}
    assert state(NAME, run_of(values, reward=np.minimum(-RETURNS, -100), kind="rl")) is State.PRESENT
