from __future__ import annotations

import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state


@pytest.mark.parametrize("seed", range(5))
def test_noise_of_three_quarters_of_the_level_is_present(seed: int) -> None:
    finding = seen("loss_noisy", run_of(loss=noisy(decay(300), 0.75, seed)))
    assert finding.state is State.PRESENT
    assert 0.5 < finding.values["share"] < 1


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("tails", ["normal", "lognormal", "t3"])
def test_the_noise_of_single_samples_is_absent(tails: str, seed: int) -> None:
    assert state("loss_noisy", run_of(loss=noisy(decay(300), 0.3, seed, tails))) is State.ABSENT


def test_large_relative_noise_near_zero_is_absent() -> None:
    assert state("loss_noisy", run_of(loss=noisy(decay(300, 2.0, 0.001, 12), 0.9))) is State.ABSENT


def test_of_a_diffusion_loss_it_cannot_be_told() -> None:
    assert state("loss_noisy", run_of(loss=noisy(decay(300), 0.9), kind="diffusion")) is State.UNKNOWN
