from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import run_of, seen, state

STEPS = np.arange(1, 21) * 50
PLANNED = {"max_steps": 1000}


def evaluations(values: object) -> dict[float, float]:
    return {float(step): float(value) for step, value in zip(STEPS, np.asarray(values), strict=True)}


STRAIGHT = evaluations(2.0 - 0.001 * STEPS)
FLATTENING = evaluations(0.5 + 1.5 * np.exp(-STEPS / 150))
POWER_LAW = evaluations(0.5 + 2.0 * STEPS**-0.5)
TURNING = evaluations(1.0 + (STEPS / 1000 - 0.8) ** 2)


def test_a_loss_that_falls_straight_to_the_end_of_the_plan_is_present_with_its_share() -> None:
    finding = seen("ends_while_improving", run_of(eval_loss=STRAIGHT, config=PLANNED, kind="supervised"))
    assert finding.state is State.PRESENT
    assert finding.values["share_in_last_quarter"] == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize("curve", [FLATTENING, POWER_LAW, TURNING], ids=["flattening", "power law", "turning"])
def test_a_loss_that_has_flattened_or_turned_is_absent(curve: dict[float, float]) -> None:
    assert state("ends_while_improving", run_of(eval_loss=curve, config=PLANNED, kind="supervised")) is State.ABSENT


@pytest.mark.parametrize("config", [{}, {"max_steps": 5000}], ids=["no plan", "not done"])
def test_without_a_plan_that_is_done_it_cannot_be_told(config: dict[str, int]) -> None:
    assert state("ends_while_improving", run_of(eval_loss=STRAIGHT, config=config, kind="supervised")) is State.UNKNOWN


def test_few_evaluations_do_not_tell_and_a_pretraining_ends_with_its_budget() -> None:
    few = {step: value for step, value in STRAIGHT.items() if step % 200 == 0}
    assert state("ends_while_improving", run_of(eval_loss=few, config=PLANNED, kind="supervised")) is State.UNKNOWN
    assert (
        state("ends_while_improving", run_of(eval_loss=STRAIGHT, config=PLANNED, kind="pretraining")) is State.UNKNOWN
    )


def test_a_loss_that_hardly_falls_is_absent() -> None:
    flat = evaluations(2.0 - 0.0001 * STEPS)
    assert state("ends_while_improving", run_of(eval_loss=flat, config=PLANNED, kind="supervised")) is State.ABSENT
