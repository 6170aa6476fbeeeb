from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state

NORM = noisy(np.full(100, 2.0), 0.2)


def test_norms_far_above_the_threshold_at_nearly_every_step_are_present() -> None:
    assert state("grad_clip_saturated", run_of(grad_norm=NORM, config={"max_grad_norm": 0.01})) is State.PRESENT


def test_norms_of_twice_the_threshold_are_absent() -> None:
    assert state("grad_clip_saturated", run_of(grad_norm=NORM, config={"max_grad_norm": 1.0})) is State.ABSENT


def test_clipping_at_the_beginning_only_is_absent() -> None:
    norm = np.concatenate([np.full(20, 50.0), np.full(80, 0.5)])
    assert state("grad_clip_saturated", run_of(grad_norm=norm, config={"max_grad_norm": 1.0})) is State.ABSENT


def test_without_the_threshold_it_cannot_be_told() -> None:
    assert state("grad_clip_saturated", run_of(grad_norm=NORM)) is State.UNKNOWN


def test_norms_that_stand_at_their_highest_value_are_clipped_there_whatever_the_configuration_tells() -> None:
    finding = seen("grad_clip_saturated", run_of(grad_norm=np.minimum(NORM, 0.25)))
    assert finding.state is State.PRESENT
    assert finding.values["threshold"] == 0.25


@pytest.mark.parametrize(("threshold", "answer"), [(0.01, State.PRESENT), (0.2, State.ABSENT)])
def test_a_threshold_that_leaves_a_fiftieth_of_the_gradient_takes_most(threshold: float, answer: State) -> None:
    run = run_of(grad_norm=NORM, config={"max_grad_norm": threshold})
    assert state("grad_clip_saturated", run) is State.PRESENT
    assert state("grad_clip_takes_most", run) is answer


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


def test_norms_that_are_logged_after_clipping_stand_at_the_threshold() -> None:
    run = run_of(grad_norm=[0.5] * 29 + [0.48], config={"max_grad_norm": 0.5})
    assert "at the clipping threshold" in seen("grad_clip_saturated", run).summary
    half = run_of(grad_norm=[0.5, 0.3] * 20, config={"max_grad_norm": 0.5})
    assert state("grad_clip_saturated", half) is State.ABSENT
