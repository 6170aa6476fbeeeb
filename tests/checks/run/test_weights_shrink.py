from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, run_of, state

NAME = "weights_shrink"


@pytest.mark.parametrize(("end", "expected"), [(4.0, State.PRESENT), (19.0, State.ABSENT), (40.0, State.ABSENT)])
def test_weights_that_lose_half_of_their_norm_shrink(end: float, expected: State) -> None:
    assert state(NAME, run_of({"param_norm": decay(40, 22.0, end)}, loss=decay(40, 4.0, 3.5))) is expected


def test_without_their_norm_it_cannot_be_told() -> None:
    assert state(NAME, run_of(loss=np.ones(30))) is State.UNKNOWN
