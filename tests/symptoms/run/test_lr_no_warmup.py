from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import run_of, run_of_records, state


def test_a_rate_at_its_peak_from_the_first_step_is_present() -> None:
    assert state("lr_no_warmup", run_of(learning_rate=np.linspace(1e-4, 0, 100))) is State.PRESENT


def test_a_warmup_is_absent() -> None:
    assert state("lr_no_warmup", run_of(learning_rate=np.minimum(np.arange(100) / 10, 1) * 1e-4)) is State.ABSENT


def test_a_configured_warmup_is_absent() -> None:
    run = run_of(learning_rate=np.linspace(1e-4, 0, 100), every=50, config={"warmup_steps": 20})
    assert state("lr_no_warmup", run) is State.ABSENT


def test_a_log_that_begins_late_cannot_tell() -> None:
    assert state("lr_no_warmup", run_of(learning_rate=[1e-4] * 10, every=500)) is State.UNKNOWN


def test_an_excerpt_that_begins_within_an_epoch_cannot_tell() -> None:
    rates = {0.6 + index / 100: 9e-6 - index * 1e-7 for index in range(10)}
    records = [{"epoch": epoch, "learning_rate": rate} for epoch, rate in rates.items()]
    assert state("lr_no_warmup", run_of_records(records)) is State.UNKNOWN


@pytest.mark.parametrize("first", [0.38, 5.0])
def test_an_excerpt_whose_records_tell_their_epoch_cannot_tell(first: float) -> None:
    records = [{"loss": 1.0, "learning_rate": 1e-4 - 1e-6 * row, "epoch": first + row / 100} for row in range(20)]
    assert state("lr_no_warmup", run_of_records(records)) is State.UNKNOWN


def test_records_that_begin_with_the_first_epoch_are_judged() -> None:
    records = [{"loss": 1.0, "learning_rate": 1e-4 - 1e-6 * row, "epoch": row // 4 / 100} for row in range(20)]
    assert state("lr_no_warmup", run_of_records(records)) is State.PRESENT
