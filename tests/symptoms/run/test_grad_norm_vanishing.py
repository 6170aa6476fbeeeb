from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, state

FLAT = noisy(np.full(100, 2.3), 0.01)


@pytest.mark.parametrize(("kind", "level"), [("sft", 5e-4), ("grpo", 1e-6), ("supervised", 1e-8), ("unknown", 1e-8)])
def test_a_tiny_norm_at_an_ordinary_loss_is_present(kind: str, level: float) -> None:
    run = run_of(grad_norm=noisy(np.full(100, level), 0.3), loss=FLAT, kind=kind)
    assert state("grad_norm_vanishing", run) is State.PRESENT


def test_a_norm_that_falls_a_thousandfold_is_present() -> None:
    run = run_of(grad_norm=np.concatenate([np.full(30, 5.0), np.full(70, 1e-3)]), loss=FLAT)
    assert state("grad_norm_vanishing", run) is State.PRESENT


@pytest.mark.parametrize(("kind", "level"), [("sft", 0.05), ("grpo", 0.002), ("unknown", 1e-4)])
def test_a_small_norm_is_absent(kind: str, level: float) -> None:
    assert state("grad_norm_vanishing", run_of(grad_norm=np.full(100, level), loss=FLAT, kind=kind)) is State.ABSENT


def test_a_norm_that_falls_with_the_loss_is_absent() -> None:
    run = run_of(grad_norm=np.geomspace(1, 1e-6, 100), loss=decay(100, 2.0, 0.001, 12))
    assert state("grad_norm_vanishing", run) is State.ABSENT


def test_zeros_cannot_tell() -> None:
    assert state("grad_norm_vanishing", run_of(grad_norm=np.zeros(100), loss=FLAT)) is State.UNKNOWN


def test_two_norms_that_are_rounding_errors_are_enough() -> None:
    assert state("grad_norm_vanishing", run_of(loss=[0.1, 0.1], grad_norm=[8e-19, 4e-19])) is State.PRESENT
