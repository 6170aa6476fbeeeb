from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import decay, run_of, seen, state


def looked_into(shares: list[float]) -> Run:
    curves: dict[str, Any] = {"loss": decay(len(shares)), "units_dead/1": shares}
    return run_of(**curves)


def test_a_layer_without_a_living_unit_is_present_with_its_step() -> None:
    finding = seen("units_dead", looked_into([0.4] * 5 + [1.0] * 15))
    assert finding.state is State.PRESENT
    assert finding.steps == [6]


def test_a_layer_with_half_of_its_units_has_none() -> None:
    assert state("units_dead", looked_into([0.5] * 20)) is State.ABSENT


def test_a_layer_that_comes_back_has_none() -> None:
    run = looked_into([1.0] * 5 + [0.3] * 15)
    assert state("units_dead", run) is State.ABSENT


def test_without_looks_it_cannot_be_told() -> None:
    assert state("units_dead", run_of(loss=decay(20))) is State.UNKNOWN
    assert state("units_dead", looked_into([1.0] * 2)) is State.UNKNOWN


@pytest.mark.parametrize(
    "name", ["dead_frac", "dead_neurons/layer1", "train/dead_relu_fraction", "val_never_active", "dead_latents"]
)
def test_shares_that_people_log_themselves_count(name: str) -> None:
    assert state("units_dead", run_of({"loss": np.ones(12), name: np.ones(12)})) is State.PRESENT
    assert state("units_dead", run_of({"loss": np.ones(12), name: np.full(12, 0.4)})) is State.ABSENT


@pytest.mark.parametrize(("name", "dead", "alive"), [
    ("net/act2_zero_share", 0.999, 0.92), ("silent_frac/layer2", 0.95, 0.6), ("inactive_units_share", 0.95, 0.6),
    ("zero_fraction/2", 1.0, 0.92), ("layer2/zero_frac", 1.0, 0.92), ("act_zero/out", 1.0, 0.92),
    ("train/relu_zeros/fc2", 1.0, 0.92), ("zero_frac_h1", 1.0, 0.92), ("l2/zero_ratio", 1.0, 0.92),
    ("frac_zero_hidden0", 1.0, 0.92), ("act_zeros_h0", 1.0, 0.92), ("z1_dead_rate", 0.95, 0.6),
])  # fmt: skip
def test_shares_of_units_that_give_nothing_count_under_any_name(name: str, dead: float, alive: float) -> None:
    assert state("units_dead", run_of({"loss": np.ones(12), name: np.full(12, dead)})) is State.PRESENT
    assert state("units_dead", run_of({"loss": np.ones(12), name: np.full(12, alive)})) is State.ABSENT


@pytest.mark.parametrize("name", [
    "zero_grad_share", "dead_groups_frac", "silent_frames_share", "frac_reward_zero_std", "zero_fraction",
    "layer2/weight/zero_fraction", "act_zero_point", "zero_out", "zero_frac_x1", "zero_frac_label3", "zero_frac_a",
])  # fmt: skip
def test_shares_of_other_things_that_are_zero_are_of_no_unit(name: str) -> None:
    assert state("units_dead", run_of({"loss": np.ones(12), name: np.ones(12)})) is State.UNKNOWN
