from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state

FALL = decay(400, 10.8, 3.0, 12.0)
AT = np.arange(400)


@pytest.mark.parametrize("seed", range(5))
def test_a_loss_that_turns_half_way_and_climbs_by_a_tenth_is_present_from_there(seed: int) -> None:
    found = seen("loss_climbs", run_of(loss=noisy(FALL + 0.0018 * np.maximum(0, AT - 220), 0.02, seed)))
    assert found.state is State.PRESENT
    assert 180 <= found.steps[0] <= 260


def test_a_step_up_as_with_other_data_is_absent() -> None:
    assert state("loss_climbs", run_of(loss=noisy(FALL + 0.3 * (AT > 220), 0.02))) is State.ABSENT


def test_a_loss_that_falls_to_the_end_cannot_tell() -> None:
    assert state("loss_climbs", run_of(loss=noisy(decay(400, 10.8, 3.0, 4.0), 0.02))) is State.UNKNOWN


def test_a_hump_is_not_present() -> None:
    hump = 0.3 * np.exp(-(((AT - 250) / 30) ** 2))
    assert state("loss_climbs", run_of(loss=noisy(FALL + hump, 0.02))) is not State.PRESENT
