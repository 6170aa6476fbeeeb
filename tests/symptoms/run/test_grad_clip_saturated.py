from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, state

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
