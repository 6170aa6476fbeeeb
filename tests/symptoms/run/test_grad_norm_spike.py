from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state


@pytest.mark.parametrize("seed", range(5))
def test_a_norm_of_thirty_times_its_level_is_present(seed: int) -> None:
    norm = noisy(np.ones(200), 0.3, seed, "lognormal")
    norm[120] = 30
    finding = seen("grad_norm_spike", run_of(grad_norm=norm))
    assert finding.state is State.PRESENT
    assert finding.steps[0] == 121


@pytest.mark.parametrize("seed", range(5))
def test_norms_that_always_vary_widely_are_absent(seed: int) -> None:
    assert state("grad_norm_spike", run_of(grad_norm=noisy(np.ones(300), 1.2, seed, "lognormal"))) is State.ABSENT


def test_a_few_norms_cannot_tell() -> None:
    assert state("grad_norm_spike", run_of(grad_norm=[1.0] * 5)) is State.UNKNOWN


def test_a_jump_that_stays_below_the_first_norms_of_a_policy_is_absent() -> None:
    norm = noisy(decay(200, 18.0, 0.07, 12), 0.1)
    norm[150] = 0.95
    assert state("grad_norm_spike", run_of(grad_norm=norm, kind="rl")) is State.ABSENT
    norm[150] = 60.0
    assert state("grad_norm_spike", run_of(grad_norm=norm, kind="rl")) is State.PRESENT
