from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import noisy, run_of, state

STAIRS = np.repeat([1.2, 0.8, 0.45, 0.2], 30)


def of_evaluation(levels: list[float], train: np.ndarray[tuple[int], np.dtype[np.float64]] = STAIRS) -> Run:
    return run_of(
        loss=noisy(train, 0.02),
        epoch=np.arange(1, 121) / 30,
        eval_loss={15 * (place + 1): level for place, level in enumerate(levels)},
        kind="sft",
    )


def test_evaluation_that_comes_down_the_stairs_of_training_is_present() -> None:
    run = of_evaluation([1.2, 1.1, 0.9, 0.7, 0.5, 0.4, 0.25, 0.2])
    assert state("eval_falls_with_epochs", run) is State.PRESENT


def test_evaluation_that_stays_is_absent() -> None:
    run = of_evaluation([1.2, 1.15, 1.13, 1.13, 1.15, 1.18, 1.25, 1.3])
    assert state("eval_falls_with_epochs", run) is State.ABSENT


def test_training_without_stairs_cannot_tell() -> None:
    run = of_evaluation([1.2, 1.1, 0.9, 0.7, 0.5, 0.4, 0.25, 0.2], np.linspace(1.2, 0.2, 120))
    assert state("eval_falls_with_epochs", run) is State.UNKNOWN
