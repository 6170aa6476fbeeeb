from __future__ import annotations

import math

import pytest

from mldebug_mcp.models import State
from tests.runs import decay, run_of, seen, state


@pytest.mark.parametrize("name", ["eval_loss", "eval_g0_loss", "eval_code/loss"])
def test_a_nonfinite_evaluation_loss_is_present_with_its_step(name: str) -> None:
    finding = seen("eval_nonfinite", run_of({name: {10: 1.0, 20: math.nan, 30: 1.0}}, loss=decay(30)))
    assert finding.state is State.PRESENT
    assert finding.steps == [20]
    assert name in finding.summary


def test_a_metric_that_is_nan_by_definition_is_absent() -> None:
    assert state("eval_nonfinite", run_of({"bbox/APs": [math.nan] * 5}, eval_loss=[1.0] * 5)) is State.ABSENT


def test_without_an_evaluation_loss_it_cannot_be_told() -> None:
    assert state("eval_nonfinite", run_of(loss=[math.nan] * 5)) is State.UNKNOWN
