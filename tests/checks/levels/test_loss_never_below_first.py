from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import noisy, run_of, run_of_records, state

NAME = "loss_above_start"
THROWN = [3.1, 4.8, 4.1, 5.0, 3.9, 4.6, 4.2, 4.9, 4.0]


def _epochs(losses: list[float], first: int = 1, **beside: list[float]) -> list[dict[str, float]]:
    return [
        {"epoch": first + at, "loss": loss, **{name: values[at] for name, values in beside.items()}}
        for at, loss in enumerate(losses)
    ]


def test_epochs_that_never_come_down_to_the_first_are_seen() -> None:
    assert state(NAME, run_of_records(_epochs(THROWN))) is State.PRESENT


@pytest.mark.parametrize("losses", [[3.1, 4.8, 2.9, 2.5, 2.4, 2.2, 2.1], [3.1, 3.15, 3.12, 3.11, 3.13, 3.12, 3.14]])
def test_a_run_that_recovers_or_stands_still_does_not_show_it(losses: list[float]) -> None:
    assert state(NAME, run_of_records(_epochs(losses))) is State.ABSENT


def test_an_accuracy_that_rises_all_the_same_is_learning() -> None:
    rising = [0.1 + 0.08 * at for at in range(len(THROWN))]
    assert state(NAME, run_of_records(_epochs(THROWN, accuracy=rising))) is State.ABSENT


def test_an_excerpt_of_later_epochs_cannot_tell() -> None:
    assert state(NAME, run_of_records(_epochs(THROWN, first=20))) is State.UNKNOWN


def test_records_of_steps_cannot_tell() -> None:
    assert state(NAME, run_of_records([{"step": at, "loss": loss} for at, loss in enumerate(THROWN)])) is State.UNKNOWN


def _steps(end: float, beside: dict[str, list[float]] | None = None) -> Run:
    return run_of(beside, loss=[2.7, 40.0, 20.0, 12.0, *noisy(np.full(56, end), 0.02)])


def test_where_a_term_sets_in_the_first_record_tells_nothing() -> None:
    assert state(NAME, _steps(5.9, {"disc_loss": [0.0] * 10 + [0.9] * 50})) is State.UNKNOWN


def test_rounds_of_boosting_are_judged_as_they_are_numbered() -> None:
    rows = [{"step": 10 * at, "loss": loss} for at, loss in enumerate(THROWN)]
    assert state(NAME, run_of_records(rows, kind="boosting")) is State.PRESENT
