from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, state


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("kind", "level"), [("sft", 300.0), ("grpo", 30.0)])
def test_norms_in_the_unstable_band_are_present(kind: str, level: float, seed: int) -> None:
    norm = noisy(np.full(100, level), 0.3, seed)
    assert state("grad_norm_high", run_of(grad_norm=norm, kind=kind)) is State.PRESENT


@pytest.mark.parametrize(("kind", "level"), [("sft", 8.0), ("sft", 30.0), ("grpo", 0.8)])
def test_norms_below_it_are_absent(kind: str, level: float) -> None:
    assert state("grad_norm_high", run_of(grad_norm=noisy(np.full(100, level), 0.3), kind=kind)) is State.ABSENT


def test_a_single_spike_is_another_symptom() -> None:
    norm = np.ones(100)
    norm[50] = 1e4
    assert state("grad_norm_high", run_of(grad_norm=norm, kind="sft")) is State.ABSENT


@pytest.mark.parametrize("kind", ["unknown", "rl", "pretraining", "diffusion"])
def test_of_kinds_without_a_known_band_it_cannot_be_told(kind: str) -> None:
    assert state("grad_norm_high", run_of(grad_norm=np.full(100, 1e5), kind=kind)) is State.UNKNOWN
