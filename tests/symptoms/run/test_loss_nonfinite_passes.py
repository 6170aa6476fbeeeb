from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, run_of, seen, state

NAME = "loss_nonfinite_passes"


@pytest.mark.parametrize("lost", [np.inf, np.nan])
def test_a_loss_that_comes_back_and_goes_on_falling_is_present(lost: float) -> None:
    loss = decay(40, 20.0, 2.0)
    loss[[4, 11, 12, 30]] = lost
    finding = seen(NAME, run_of(loss=loss))
    assert finding.state is State.PRESENT
    assert finding.steps == [5]
    assert finding.values["lost"] == 4


@pytest.mark.parametrize(
    "loss",
    [
        [3.0, 2.5, 2.2, np.nan, np.nan, np.nan, np.nan],
        [3.0, 2.5, 2.2, np.inf, 9.0, 8.0, 9.5, 9.0],
        [3.0, 2.0, 1.0],
        [np.nan] * 4,
        [np.nan, 3.0, 2.0, 2.0, 1.9],
    ],
    ids=["lost for good", "back higher", "always finite", "never finite", "lost at first"],
)
def test_of_a_loss_that_does_not_come_back_as_good_it_cannot_be_told(loss: list[float]) -> None:
    assert state(NAME, run_of(loss=loss)) is State.UNKNOWN


def test_where_an_evaluation_is_lost_too_it_is_not_these_batches_alone() -> None:
    loss = decay(40, 20.0, 2.0)
    loss[[4, 11, 12, 30]] = np.nan
    assert state(NAME, run_of(loss=loss, eval_loss={10: 9.0, 20: np.nan, 30: 5.0})) is State.UNKNOWN
