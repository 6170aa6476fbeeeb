from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import Curve, decay, noisy, run_of, state


@pytest.mark.parametrize("seed", range(5))
def test_a_metric_that_jumps_at_random_is_present(seed: int) -> None:
    accuracy = np.random.default_rng(seed).uniform(0.1, 0.9, 30)
    assert state("eval_metric_flickers", run_of(eval_accuracy=accuracy)) is State.PRESENT


@pytest.mark.parametrize("seed", range(5))
def test_an_evaluation_loss_that_jumps_at_random_is_present(seed: int) -> None:
    loss = noisy(np.full(60, 2.0), 0.7, seed, "lognormal")
    assert state("eval_metric_flickers", run_of(eval_loss=loss)) is State.PRESENT


@pytest.mark.parametrize("seed", range(5))
def test_a_noisy_metric_with_a_trend_is_absent(seed: int) -> None:
    accuracy = noisy(1 - decay(30, 0.9, 0.1), 0.05, seed)
    assert state("eval_metric_flickers", run_of(eval_accuracy=accuracy, eval_loss=decay(30))) is State.ABSENT


def test_small_random_changes_of_a_converged_metric_are_absent() -> None:
    assert state("eval_metric_flickers", run_of(eval_accuracy=noisy(np.full(30, 0.9), 0.03))) is State.ABSENT


def test_seven_evaluations_cannot_tell() -> None:
    assert state("eval_metric_flickers", run_of(eval_accuracy=[0.1, 0.9] * 3)) is State.UNKNOWN


def evaluated(size: float, kind: str = "sft") -> Run:
    levels = 1.2 + size * np.random.default_rng(3).standard_normal(15)
    return run_of(
        loss=noisy(decay(150, 1.5, 1.0), 0.02),
        eval_loss={10 * (place + 1): float(level) for place, level in enumerate(levels)},
        kind=kind,
    )


@pytest.mark.parametrize(("size", "answer"), [(0.3, State.PRESENT), (0.02, State.ABSENT)])
def test_scatter_of_a_loss_per_token_is_judged(size: float, answer: State) -> None:
    assert state("eval_metric_flickers", evaluated(size)) is answer


def test_a_small_set_of_a_classifier_may_scatter_as_much() -> None:
    assert state("eval_metric_flickers", evaluated(0.15, "supervised")) is State.ABSENT


STEPS = range(10, 401, 10)


def _at(values: NDArray[np.float64]) -> dict[float, float]:
    return dict(zip(STEPS, values.tolist(), strict=True))


def scattered(at_peak: float, at_end: float, rate: Curve | None = None, kind: str = "supervised") -> Run:
    """A run of 40 evaluations under a rate that falls as a cosine, with noise of the loss that goes from one size to
    another with it."""
    share = (1 + np.cos(np.pi * np.arange(400) / 400)) / 2
    sizes = at_end + (at_peak - at_end) * share[9::10]
    values = decay(40, 1.4, 1.0) + sizes * np.random.default_rng(5).standard_normal(40)
    return run_of(
        loss=noisy(decay(400, 1.6, 0.9), 0.05),
        learning_rate=1e-3 * share if rate is None else rate,
        eval_loss=_at(values),
        kind=kind,
    )
