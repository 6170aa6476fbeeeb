from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import run_of, state


def drift(end: float, size: float = 0.05, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.linspace(0, end, 100) + size * np.random.default_rng(seed).standard_normal(100)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("end", [0.0, 0.01, -0.3])
def test_a_margin_that_does_not_grow_is_present(end: float, seed: int) -> None:
    assert state("dpo_margin_flat", run_of({"rewards/margins": drift(end, seed=seed)})) is State.PRESENT


@pytest.mark.parametrize("seed", range(5))
def test_a_margin_that_grows_is_absent(seed: int) -> None:
    assert state("dpo_margin_flat", run_of({"rewards/margins": drift(0.6, 0.2, seed)})) is State.ABSENT


def test_small_margins_of_a_small_beta_are_absent() -> None:
    run = run_of({"rewards/margins": drift(0.05, 0.005)}, config={"beta": 0.01})
    assert state("dpo_margin_flat", run) is State.ABSENT


def test_small_margins_that_tell_the_pairs_apart_are_absent() -> None:
    run = run_of({"rewards/margins": drift(0.05, 0.005), "rewards/accuracies": np.linspace(0.5, 0.8, 100)})
    assert state("dpo_margin_flat", run) is State.ABSENT


def test_the_first_steps_cannot_tell() -> None:
    assert state("dpo_margin_flat", run_of({"rewards/margins": [0.0] * 10})) is State.UNKNOWN
