from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import run_of, seen, state

AT = np.arange(200) / 200


@pytest.mark.parametrize("floor", [0.0, 1e-5])
def test_a_decay_that_ends_before_the_run_is_present_from_there_on(floor: float) -> None:
    rate = floor + (1e-4 - floor) * np.maximum(0.5 + 0.5 * np.cos(np.pi * np.minimum(AT / 0.6, 1)), 0)
    finding = seen("lr_schedule_short", run_of(learning_rate=rate))
    assert finding.state is State.PRESENT
    assert finding.steps[0] == pytest.approx(121, abs=5)


@pytest.mark.parametrize(
    "rate",
    [
        0.5 + 0.5 * np.cos(np.pi * AT),
        1 - AT,
        np.minimum(1, (1 - AT) / 0.1),
        np.full(200, 1.0),
        0.1 ** np.floor(AT * 3),
        np.minimum(AT / 0.3, 1),
        np.maximum(0.2, 0.6 + 0.4 * np.cos(np.pi * np.minimum(AT / 0.6, 1))),
    ],
    ids=["cosine", "linear", "stable then decay", "constant", "stages", "warmup then constant", "averaging at a fifth"],
)
def test_a_schedule_as_long_as_the_run_is_absent(rate: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    assert state("lr_schedule_short", run_of(learning_rate=1e-4 * rate)) is State.ABSENT


def test_a_few_records_cannot_tell() -> None:
    assert state("lr_schedule_short", run_of(learning_rate=[3.0, 2.0, 1.0, 1.0])) is State.UNKNOWN


def test_a_schedule_rounded_to_six_decimals_is_not_taken_for_one_that_ended() -> None:
    rate = 1e-5 * 0.5 * (1 + np.cos(np.pi * np.arange(100) / 99))
    assert state("lr_schedule_short", run_of(learning_rate=np.round(rate, 6))) is State.UNKNOWN
    assert state("lr_zero", run_of(learning_rate=np.round(rate, 6), loss=np.ones(100))) is State.UNKNOWN


def test_a_schedule_rounded_to_six_decimals_that_ends_half_way_is_still_seen() -> None:
    rate = 1e-5 * 0.5 * (1 + np.cos(np.pi * np.minimum(1, np.arange(100) / 50)))
    assert state("lr_schedule_short", run_of(learning_rate=np.round(rate, 6))) is State.PRESENT
    assert state("lr_zero", run_of(learning_rate=np.round(rate, 6), loss=np.ones(100))) is State.PRESENT
