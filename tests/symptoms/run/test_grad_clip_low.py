from __future__ import annotations

import pytest

from mldebug_mcp.models import State
from tests.runs import decay, run_of, seen, state


@pytest.mark.parametrize("threshold", [0.05, 0.001])
def test_a_threshold_of_a_twentieth_or_less_is_present(threshold: float) -> None:
    finding = seen("grad_clip_low", run_of(loss=decay(50), config={"max_grad_norm": threshold}))
    assert finding.state is State.PRESENT
    assert finding.values["max_grad_norm"] == threshold


@pytest.mark.parametrize("threshold", [0.0, 0.1, 0.3, 1.0])
def test_usual_thresholds_and_none_at_all_are_absent(threshold: float) -> None:
    assert state("grad_clip_low", run_of(loss=decay(50), config={"max_grad_norm": threshold})) is State.ABSENT


def test_a_threshold_that_no_gradient_reaches_is_absent() -> None:
    run = run_of(loss=decay(50), grad_norm=[0.01] * 50, config={"max_grad_norm": 0.02})
    assert state("grad_clip_low", run) is State.ABSENT


def test_without_a_configuration_it_cannot_be_told() -> None:
    assert state("grad_clip_low", run_of(loss=decay(50))) is State.UNKNOWN
