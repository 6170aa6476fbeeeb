from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import Curve, decay, noisy, run_of, seen, state

NAME = "eval_learns_nothing"
FALLS = decay(50, 0.69, 0.2)
COIN = noisy(np.full(50, 0.5), 0.01, 1)


def test_a_coin_on_held_out_rows_and_a_rise_on_known_ones_is_present() -> None:
    finding = seen(NAME, run_of(loss=FALLS, eval_auc=COIN))
    assert finding.state is State.PRESENT


def test_an_auc_that_is_or_was_above_chance_is_absent() -> None:
    better: list[Curve] = [decay(50, 0.5, 0.62), decay(50, 0.75, 0.5)]
    assert [state(NAME, run_of(loss=FALLS, eval_auc=one)) for one in better] == [State.ABSENT] * 2


def test_where_training_learns_nothing_either_it_cannot_be_told() -> None:
    assert state(NAME, run_of(loss=np.full(50, 0.69), eval_auc=COIN)) is State.UNKNOWN
    assert state(NAME, run_of(auc=COIN, eval_auc=COIN)) is State.UNKNOWN
