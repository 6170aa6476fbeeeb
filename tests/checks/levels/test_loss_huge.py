from __future__ import annotations

import pytest

from mldebug_mcp.models import State
from tests.runs import run_of, seen, state


@pytest.mark.parametrize("loss", [[7e24], [2.0, 1.9, -3e18, 1.8]])
def test_a_loss_near_overflow_is_present(loss: list[float]) -> None:
    assert seen("loss_huge", run_of(loss=loss)).values["records"] == 1


@pytest.mark.parametrize("loss", [[2.0], [4e10, 3e10], [138.0, 90.0]])
def test_a_large_loss_is_absent(loss: list[float]) -> None:
    assert state("loss_huge", run_of(loss=loss)) is State.ABSENT


def test_without_a_finite_loss_it_cannot_be_told() -> None:
    assert state("loss_huge", run_of(loss=[float("nan")])) is State.UNKNOWN
