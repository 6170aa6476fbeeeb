from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import decay, run_of, seen, state


def looked_into(shares: list[float]) -> Run:
    return run_of(loss=decay(len(shares)), rows_evaluated=shares)


def test_batches_with_rows_of_the_evaluation_are_present_from_the_first_on() -> None:
    finding = seen("rows_evaluated", looked_into([0.0, 0.25, 0.125, 0.25]))
    assert finding.state is State.PRESENT
    assert finding.steps == [2]


def test_one_row_of_a_batch_that_is_alike_by_chance_is_none() -> None:
    assert state("rows_evaluated", looked_into([0.0625] * 5)) is State.ABSENT


def test_without_looks_it_cannot_be_told() -> None:
    assert state("rows_evaluated", run_of(loss=decay(20))) is State.UNKNOWN
    assert state("rows_evaluated", looked_into([1.0] * 2)) is State.UNKNOWN
