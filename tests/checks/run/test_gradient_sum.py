from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("power", [0.6, 1.0])
def test_a_norm_that_grows_with_the_number_of_steps_adds_up(power: float, seed: int) -> None:
    norm = noisy(np.arange(1, 61) ** power, 0.05, seed, "lognormal")
    finding = seen("grad_norm_adds_up", run_of(grad_norm=norm))
    assert finding.state is State.PRESENT
    assert "as a sum of the gradients of all steps does" in finding.summary


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("curve", [np.ones(60), np.geomspace(5, 0.5, 60), 1 + np.arange(60) / 60])
def test_a_norm_that_is_noisy_falls_or_drifts_adds_nothing_up(
    curve: np.ndarray[tuple[int], np.dtype[np.float64]], seed: int
) -> None:
    norm = noisy(curve, 0.3, seed, "lognormal")
    assert state("grad_norm_adds_up", run_of(grad_norm=norm)) is State.ABSENT


def test_a_norm_that_grows_exponentially_adds_nothing_up() -> None:
    assert state("grad_norm_adds_up", run_of(grad_norm=np.geomspace(1, 1e6, 60))) is State.ABSENT


def test_of_an_agent_and_of_few_norms_it_is_unknown_whether_they_add_up() -> None:
    norm = np.arange(1.0, 61.0)
    assert state("grad_norm_adds_up", run_of(grad_norm=norm[:8])) is State.UNKNOWN
    assert state("grad_norm_adds_up", run_of(grad_norm=norm, explained_variance=norm / 60)) is State.UNKNOWN
