from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, state


def ending(levels: list[float]) -> Run:
    return run_of(
        loss=noisy(decay(120, 1.5, 0.8), 0.02),
        eval_loss={10 * (place + 1): level for place, level in enumerate(levels)},
        kind="sft",
    )


def test_a_rise_of_two_per_cent_by_turns_is_slight() -> None:
    run = ending([1.2, 1.12, 1.08, 1.06, 1.053, 1.05, 1.051, 1.0505, 1.073, 1.0725, 1.074, 1.0735])
    assert state("eval_gap_slight", run) is State.PRESENT
    assert state("eval_gap_grows", run) is State.ABSENT


def test_a_rise_by_a_tenth_is_more() -> None:
    run = ending([1.2, 1.12, 1.08, 1.06, 1.055, 1.05, 1.08, 1.07, 1.13, 1.12, 1.16, 1.155])
    assert state("eval_gap_slight", run) is State.ABSENT
    assert state("eval_gap_grows", run) is State.PRESENT


def test_a_small_rise_at_every_evaluation_is_more() -> None:
    run = ending([1.2, 1.1, 1.06, 1.05, 1.051, 1.053, 1.056, 1.06, 1.064, 1.068, 1.072, 1.076])
    assert state("eval_gap_grows", run) is State.PRESENT


def test_evaluation_that_falls_cannot_tell() -> None:
    assert state("eval_gap_slight", ending([1.2 - 0.01 * place for place in range(12)])) is State.UNKNOWN
