from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state

NAME = "noise_follows_rate"
COUNT = 600
COSINE = 1e-3 * (0.51 + 0.49 * np.cos(np.linspace(0, np.pi, COUNT)))
WARMED = np.where(np.arange(COUNT) < 60, np.arange(1, COUNT + 1) / 60 * 1e-3, COSINE)
STEPPED = np.repeat([1e-2, 1e-3, 1e-4], 200)


def thrown(rate: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Return a loss whose noise is in proportion to the learning rate."""
    return np.asarray(decay(COUNT) * (1 + 0.2 * rate / rate.max() * np.random.default_rng(seed).standard_normal(COUNT)))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rate", [COSINE, STEPPED, WARMED], ids=["cosine", "steps", "warmup"])
def test_noise_in_proportion_to_the_rate_is_present(rate: NDArray[np.float64], seed: int) -> None:
    finding = seen(NAME, run_of(loss=thrown(rate, seed), learning_rate=rate))
    assert finding.state is State.PRESENT
    assert finding.values["noise_at_high_rate"] > 2 * finding.values["noise_at_low_rate"]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("tails", ["normal", "lognormal", "t3"])
def test_noise_of_batches_does_not_follow_the_rate(tails: str, seed: int) -> None:
    assert state(NAME, run_of(loss=noisy(decay(COUNT), 0.2, seed, tails), learning_rate=COSINE)) is State.ABSENT


@pytest.mark.parametrize("seed", range(5))
def test_noise_of_one_size_about_a_loss_that_falls_does_not_follow_the_rate(seed: int) -> None:
    loss = decay(COUNT) + 0.1 * np.random.default_rng(seed).standard_normal(COUNT)
    assert state(NAME, run_of(loss=loss, learning_rate=WARMED)) is State.ABSENT


@pytest.mark.parametrize("seed", range(5))
def test_a_loss_that_goes_to_zero_with_its_noise_while_the_rate_decays_cannot_tell(seed: int) -> None:
    loss = noisy(decay(COUNT, 4.0, 0.001, 12), 0.3, seed)
    assert state(NAME, run_of(loss=loss, learning_rate=COSINE)) is State.UNKNOWN


@pytest.mark.parametrize("seed", range(20))
def test_warm_restarts_over_a_loss_with_the_noise_of_batches_are_absent(seed: int) -> None:
    rate = 1e-3 * (0.55 + 0.45 * np.cos(np.linspace(0, 6 * np.pi, COUNT)))
    assert state(NAME, run_of(loss=noisy(decay(COUNT), 0.15, seed), learning_rate=rate)) is State.ABSENT


def test_a_constant_rate_or_a_short_log_cannot_tell() -> None:
    assert state(NAME, run_of(loss=noisy(decay(COUNT), 0.2), learning_rate=np.full(COUNT, 1e-3))) is State.UNKNOWN
    assert state(NAME, run_of(loss=noisy(decay(40), 0.2), learning_rate=COSINE[::15])) is State.UNKNOWN


@pytest.mark.parametrize("seed", range(40))
def test_noise_that_comes_up_while_a_new_model_learns_to_tell_rows_apart_is_no_sign_of_the_rate(seed: int) -> None:
    peak = np.concatenate([np.linspace(1e-5, 1e-3, 200), np.full(300, 1e-3), np.linspace(1e-3, 1e-5, 100)])
    size = 0.2 * np.minimum(1, np.arange(COUNT) / 200)
    loss = decay(COUNT) * (1 + size * np.random.default_rng(seed).standard_normal(COUNT))
    assert state(NAME, run_of(loss=loss, learning_rate=peak)) is not State.PRESENT
