from __future__ import annotations

import pytest

from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.models import State
from tests.runs import decay, run_of, seen, state

NAME = "warmup_exceeds_plan"


def test_a_warmup_of_a_hundred_thousand_steps_in_a_run_of_240_is_present() -> None:
    finding = seen(NAME, run_of(loss=decay(240), config={"warmup_steps": 100_000, "max_steps": 240}))
    assert finding.state is State.PRESENT
    assert finding.values == {"warmup": 100_000, "planned": 240, "share": 0.0024}


def test_epochs_of_warmup_and_of_the_plan_are_compared_in_steps() -> None:
    config: dict[str, Scalar] = {"warmup_epochs": 5, "num_train_epochs": 3, "train_rows": 640, "batch_size": 64}
    assert seen(NAME, run_of(loss=decay(30), config=config)).values["warmup"] == 50


@pytest.mark.parametrize(
    "config",
    [
        {"warmup_steps": 20, "max_steps": 240},
        {"warmup_steps": 0, "max_steps": 240},
        {"warmup_ratio": 0.1, "max_steps": 9},
    ],
)
def test_a_warmup_that_ends_within_the_plan_is_absent(config: dict[str, Scalar]) -> None:
    assert state(NAME, run_of(loss=decay(50), config=config)) is State.ABSENT


@pytest.mark.parametrize("config", [{}, {"warmup_steps": 100_000}, {"max_steps": 240}])
def test_without_warmup_and_plan_it_cannot_be_told(config: dict[str, Scalar]) -> None:
    assert state(NAME, run_of(loss=decay(50), config=config)) is State.UNKNOWN
