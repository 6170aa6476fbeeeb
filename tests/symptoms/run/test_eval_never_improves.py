from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import run_of, run_of_records, state

NAME = "eval_never_improves"
FALLING = 1 + 2 * np.exp(-np.arange(100) / 30)


def evaluated(values: list[float]) -> dict[int, float]:
    return {10 * (number + 1): value for number, value in enumerate(values)}


def test_an_evaluation_that_only_rises_is_seen() -> None:
    run = run_of(loss=FALLING, eval_loss=evaluated([2.9, 3.1, 3.4, 3.6, 3.9, 4.0, 4.2, 4.3]))
    assert state(NAME, run) is State.PRESENT


def test_one_that_improves_before_it_rises_is_not() -> None:
    run = run_of(loss=FALLING, eval_loss=evaluated([2.9, 2.2, 1.9, 1.8, 1.9, 2.1, 2.3, 2.5]))
    assert state(NAME, run) is State.ABSENT


def test_one_that_falls_is_not_judged() -> None:
    run = run_of(loss=FALLING, eval_loss=evaluated([2.9, 2.2, 1.9, 1.8, 1.7, 1.6, 1.5, 1.5]))
    assert state(NAME, run) is State.UNKNOWN


def test_an_excerpt_of_late_epochs_cannot_tell() -> None:
    records = [
        {"epoch": 43 + index, "loss": 0.02 - index / 2000, "eval_loss": 0.0078 + index / 3000} for index in range(12)
    ]
    assert state("eval_never_improves", run_of_records(records)) is State.UNKNOWN
