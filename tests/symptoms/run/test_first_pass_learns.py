from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of_records, seen, state

NAME = "first_pass_learns"


def _epochs(first: float, right: float = 0.1) -> list[dict[str, float]]:
    trained, losses = decay(20, first, 0.98), decay(20, 2.3, 0.1)
    return [
        {"epoch": at, "loss": one, "accuracy": good, "val_loss": 2.31 + 0.1 * at, "val_accuracy": right}
        for at, (one, good) in enumerate(zip(losses.tolist(), trained.tolist(), strict=True))
    ]


@pytest.mark.parametrize(("first", "answer"), [(0.56, State.PRESENT), (0.12, State.ABSENT)])
def test_the_accuracy_of_the_first_epoch_is_held_against_a_guess(first: float, answer: State) -> None:
    finding = seen(NAME, run_of_records(_epochs(first)))
    assert finding.state is answer
    assert finding.values.get("accuracy") == (pytest.approx(0.56) if answer is State.PRESENT else None)


@pytest.mark.parametrize(("reached", "answer"), [(1.6, State.PRESENT), (2.3, State.ABSENT)])
def test_of_steps_those_of_the_first_epoch_are_looked_at(reached: float, answer: State) -> None:
    loss = noisy(np.concatenate([decay(100, 2.3, reached), decay(300, reached, 0.1)]), 0.005)
    rows: list[dict[str, float]] = [
        {"step": at, "epoch": at / 100, "loss": one} for at, one in enumerate(loss.tolist())
    ]
    for at in range(50, 400, 50):
        rows[at] |= {"eval_loss": 2.31 + 0.01 * at, "eval_accuracy": 0.1}
    assert state(NAME, run_of_records(rows)) is answer


def test_where_evaluation_learns_it_is_not_asked() -> None:
    rows = [row | {"val_loss": 2.3 - 0.1 * row["epoch"], "val_accuracy": 0.5} for row in _epochs(0.5)]
    assert state(NAME, run_of_records(rows)) is State.UNKNOWN
