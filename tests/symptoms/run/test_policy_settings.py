from __future__ import annotations

import pytest

from mldebug_mcp.logs.run import Scalar
from mldebug_mcp.models import State
from tests.runs import run_of, state

OUTCOMES = ("discount_above_one", "discount_low", "entropy_bonus_negative")


def present(config: dict[str, Scalar], kind: str = "rl", length: float = 200.0) -> list[str]:
    run = run_of(reward=[1.0] * 20, episode_length=[length] * 20, kind=kind, config=config)
    return [name for name in OUTCOMES if state(name, run) is State.PRESENT]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"gamma": 1.2}, "discount_above_one"),
        ({"gamma": 0.0}, "discount_low"),
        ({"gamma": 0.3}, "discount_low"),
        ({"gamma": 0.99, "ent_coef": -0.3}, "entropy_bonus_negative"),
    ],
)
def test_settings_with_which_no_agent_learns_are_present(config: dict[str, Scalar], expected: str) -> None:
    assert present(config) == [expected]


@pytest.mark.parametrize(
    ("config", "kind", "length"),
    [
        ({"gamma": 0.99, "ent_coef": 0.01}, "rl", 200.0),
        ({"gamma": 1.0, "ent_coef": 0.0}, "ppo", 200.0),
        ({"gamma": 0.0}, "rl", 1.0),
        ({"gamma": 0.9}, "rl", 500.0),
        ({"gamma": 2.0}, "supervised", 200.0),
        ({"gamma": 0.1}, "supervised", 200.0),
    ],
    ids=["usual", "undiscounted", "bandit", "short sight", "focal loss", "decay of the rate"],
)
def test_usual_settings_and_those_of_others_are_not_present(
    config: dict[str, Scalar], kind: str, length: float
) -> None:
    assert present(config, kind, length) == []


def test_a_discount_cannot_be_told_from_a_bandit_without_the_length_of_episodes() -> None:
    assert state("discount_low", run_of(reward=[1.0] * 20, kind="rl", config={"gamma": 0.0})) is State.UNKNOWN


def test_what_is_not_configured_cannot_be_told() -> None:
    assert {state(name, run_of(reward=[1.0] * 20, kind="rl")) for name in OUTCOMES} == {State.UNKNOWN}
