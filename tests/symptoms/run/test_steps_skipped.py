from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import run_of, seen, state


def test_steps_skipped_again_and_again_are_present() -> None:
    skipped = np.zeros(200)
    skipped[60::5] = 1
    finding = seen("steps_skipped", run_of(skipped_iterations=skipped))
    assert finding.state is State.PRESENT
    assert finding.steps == [61]


def test_several_skipped_steps_on_end_are_present() -> None:
    skipped = np.zeros(500)
    skipped[300:305] = 1
    assert state("steps_skipped", run_of(skipped_iterations=skipped)) is State.PRESENT


def test_a_counter_over_the_whole_run_is_read_as_one() -> None:
    assert state("steps_skipped", run_of(skipped_iterations=np.r_[np.zeros(99), np.full(200, 1.0)])) is State.ABSENT
    assert state("steps_skipped", run_of(skipped_iterations=np.arange(300.0) // 4)) is State.PRESENT


@pytest.mark.parametrize("at", [slice(0, 8), slice(100, 101), slice(50, None, 100)], ids=["start", "one", "far apart"])
def test_a_scaler_that_finds_its_limit_is_absent(at: slice) -> None:
    skipped = np.zeros(400)
    skipped[at] = 1
    assert state("steps_skipped", run_of(skipped_iterations=skipped)) is State.ABSENT


def test_each_halving_of_the_scale_counts_where_there_is_no_counter() -> None:
    assert state("steps_skipped", run_of(loss_scale=2.0 ** np.maximum(20 - np.arange(60) / 2, -5))) is State.PRESENT


def test_without_a_counter_or_a_scale_it_cannot_be_told() -> None:
    assert state("steps_skipped", run_of(loss=[1.0] * 9)) is State.UNKNOWN


def test_where_only_skipped_steps_are_logged_it_cannot_be_told() -> None:
    run = run_of(overflow=[1.0] * 6, loss_scale=[64.0, 32.0, 16.0, 8.0, 4.0, 2.0])
    assert state("steps_skipped", run) is State.UNKNOWN


def test_the_sentence_tells_after_how_many_records_it_looked() -> None:
    finding = seen("steps_skipped", run_of(skipped_iterations=[0, 0, 0, 0, 1, 0, 1, 0, 1, 0]))
    assert "after the first 5" in finding.summary


def test_messages_of_skipped_steps_count_beside_the_records_of_the_others() -> None:
    run = run_of(loss=dict.fromkeys(range(10, 101, 10), 3.0), overflow=dict.fromkeys(range(71, 77), 1.0))
    finding = seen("steps_skipped", run)
    assert finding.state is State.PRESENT
    assert finding.summary.startswith("skipped steps in 6 of 16 records, the first at step 71")


def test_the_whole_descent_from_the_start_is_no_overflow() -> None:
    run = run_of(loss=dict.fromkeys(range(1, 14), 3.0), overflow=dict.fromkeys(range(1, 12), 1.0))
    assert state("steps_skipped", run) is State.ABSENT


def test_a_scale_that_only_comes_down_from_where_it_began_is_absent() -> None:
    assert state("steps_skipped", run_of(loss_scale=[2.0**power for power in range(32, 25, -1)])) is State.ABSENT
