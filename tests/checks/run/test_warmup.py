from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.models import State
from tests.runs import decay, run_of, run_of_records, seen, state

NAME = "warmup_exceeds_plan"


def test_a_warmup_of_a_hundred_thousand_steps_in_a_run_of_240_is_present() -> None:
    finding = seen(NAME, run_of(loss=decay(240), config={"warmup_steps": 100_000, "max_steps": 240}))
    assert finding.state is State.PRESENT
    assert finding.values == {"warmup": 100_000, "planned": 240, "share": 0.0024}


def test_epochs_of_warmup_and_of_the_plan_are_compared_in_steps() -> None:
    config: dict[str, Scalar] = {"warmup_epochs": 5, "num_train_epochs": 3, "train_rows": 640, "batch_size": 64}
    assert seen(NAME, run_of(loss=decay(30), config=config)).values["warmup"] == 50


@pytest.mark.parametrize(
    "config",
    [
        {"warmup_steps": 20, "max_steps": 240},
        {"warmup_steps": 0, "max_steps": 240},
        {"warmup_ratio": 0.1, "max_steps": 9},
    ],
)
def test_a_warmup_that_ends_within_the_plan_is_absent(config: dict[str, Scalar]) -> None:
    assert state(NAME, run_of(loss=decay(50), config=config)) is State.ABSENT


@pytest.mark.parametrize("config", [{}, {"warmup_steps": 100_000}, {"max_steps": 240}])
def test_without_warmup_and_plan_it_cannot_be_told(config: dict[str, Scalar]) -> None:
    assert state(NAME, run_of(loss=decay(50), config=config)) is State.UNKNOWN


def test_a_rate_at_its_peak_from_the_first_step_is_present() -> None:
    assert state("lr_no_warmup", run_of(learning_rate=np.linspace(1e-4, 0, 100))) is State.PRESENT


def test_a_warmup_is_absent() -> None:
    assert state("lr_no_warmup", run_of(learning_rate=np.minimum(np.arange(100) / 10, 1) * 1e-4)) is State.ABSENT


def test_a_configured_warmup_is_absent() -> None:
    run = run_of(learning_rate=np.linspace(1e-4, 0, 100), every=50, config={"warmup_steps": 20})
    assert state("lr_no_warmup", run) is State.ABSENT


def test_a_log_that_begins_late_cannot_tell_of_no_warmup() -> None:
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


WARMED: dict[str, Scalar] = {"warmup_steps": 40, "max_steps": 200, "lr_scheduler_type": "cosine"}


def test_a_rate_at_its_peak_from_the_start_of_a_configured_warmup_is_present() -> None:
    finding = seen("lr_skips_warmup", run_of(learning_rate=np.linspace(1e-4, 0, 200), config=WARMED))
    assert finding.state is State.PRESENT
    assert finding.values["warmup"] == 40


@pytest.mark.parametrize(
    ("rate", "every", "config"),
    [
        (np.minimum((np.arange(200) + 1) / 40, 1), 1, {}),
        (np.minimum((np.arange(200) + 1) / 20, 1), 1, {}),
        (np.full(200, 1.0), 1, {"lr_scheduler_type": "constant"}),
        (np.linspace(1, 0, 20), 50, {}),
        (np.minimum(0.33 + (np.arange(200) + 1) / 60, 1), 1, {}),
        (np.full(30, 1.0), 1, {}),
    ],
    ids=["warmed up", "twice as fast", "constant ignores it", "too coarse", "from a third", "still in it"],
)
def test_a_rate_that_warms_up_or_cannot_be_seen_to_is_not_present(
    rate: np.ndarray[tuple[int], np.dtype[np.float64]], every: int, config: dict[str, Scalar]
) -> None:
    run = run_of(learning_rate=1e-4 * rate, every=every, config={**WARMED, **config})
    assert state("lr_skips_warmup", run) is not State.PRESENT
