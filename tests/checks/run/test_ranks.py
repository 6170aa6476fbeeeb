from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state

NAME = "rank_differs"


def ranks(
    name: str, levels: list[float], noise: float = 0.01
) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    return {name.format(rank): noisy(np.full(60, level), noise, seed=rank) for rank, level in enumerate(levels)}


@pytest.mark.parametrize("name", ["rank{}/step_time", "rank_{}/forward_time", "step_time/rank{}", "node{}_data_time"])
def test_a_rank_that_takes_longer_than_the_others_is_seen(name: str) -> None:
    finding = seen(NAME, run_of(ranks(name, [0.5, 0.51, 0.8, 0.5])))
    assert finding.state is State.PRESENT
    assert finding.values["rank"] == 2
    assert "rank 2" in finding.summary


@pytest.mark.parametrize("name", ["perf/rank{}_compute_s", "train/gpu{}/forward_ms", "timers/step_time/rank{}"])
@pytest.mark.parametrize(("slow", "present"), [((2,), True), ((0, 1, 2, 3), False), ((), False)])
def test_a_rank_that_becomes_slow_late_is_seen_where_the_others_keep_their_pace(
    name: str, slow: tuple[int, ...], present: bool
) -> None:
    times = ranks(name, [0.5, 0.51, 0.52, 0.5], 0.02)
    for rank in slow:
        times[name.format(rank)][35:] *= 3 + np.random.default_rng(1).exponential(2, 25)  # of long tails
    run = run_of(times)
    assert (state(NAME, run) is State.PRESENT) is present
    if present:
        assert seen(NAME, run).values["rank"] == 2
        assert seen(NAME, run).steps == [36]


@pytest.mark.parametrize(("slow", "present"), [(True, True), (False, False)])
def test_a_rank_that_becomes_slow_is_seen_where_each_is_slow_now_and_then(*, slow: bool, present: bool) -> None:
    times = ranks("rank{}/compute_ms", [1.1, 0.9, 0.8, 0.8], 0.1)
    rng = np.random.default_rng(2)
    for each in times.values():
        each[rng.random(60) < 0.25] = 5.2
    if slow:
        times["rank2/compute_ms"][30:] = 5.0 + rng.exponential(6, 30)
    assert (state(NAME, run_of(times)) is State.PRESENT) is present


def test_a_loss_that_is_not_finite_on_one_rank_alone_is_seen() -> None:
    losses = ranks("rank{}/loss", [2.0, 2.0, 2.0])
    losses["rank1/loss"][40:] = np.nan
    finding = seen(NAME, run_of(losses))
    assert finding.state is State.PRESENT
    assert finding.steps == [41]


def test_ranks_that_are_alike_are_absent() -> None:
    assert state(NAME, run_of(ranks("rank{}/step_time", [0.5, 0.52, 0.55, 0.5]))) is State.ABSENT


def test_ranks_that_are_slow_in_turn_are_absent() -> None:
    times = ranks("rank{}/step_time", [0.5, 0.5, 0.5])
    for rank in range(3):
        times[f"rank{rank}/step_time"][rank::3] = 2.0
    assert state(NAME, run_of(times)) is State.ABSENT


def test_a_loss_that_is_lost_on_every_rank_is_absent() -> None:
    losses = ranks("rank{}/loss", [2.0, 2.0, 2.0])
    for loss in losses.values():
        loss[40:] = np.nan
    assert state(NAME, run_of(losses)) is State.ABSENT


def test_two_ranks_cannot_tell_which_of_them_is_off() -> None:
    assert state(NAME, run_of(ranks("rank{}/step_time", [0.5, 0.8]))) is State.UNKNOWN


def test_what_the_gpus_use_of_memory_is_no_time_or_loss() -> None:
    assert state(NAME, run_of(ranks("gpu{}/memory_gb", [10, 11, 40, 10]))) is State.UNKNOWN


def test_a_rank_whose_loss_leaves_the_others_computes_something_else() -> None:
    losses = ranks("rank{}/loss", [1.0, 1.0, 1.0])
    assert state(NAME, run_of(losses)) is State.ABSENT
    losses["rank1/loss"][40:] = 3.0
    finding = seen(NAME, run_of(losses))
    assert finding.state is State.PRESENT
    assert 38 <= finding.steps[0] <= 43
    assert state("rank_computes_otherwise", run_of(losses)) is State.PRESENT


def test_a_rank_leaves_the_others_where_it_first_does_however_far_its_losses_scatter() -> None:
    losses = ranks("rank{}_loss", [1.0, 1.0, 1.0, 1.0])
    losses["rank3_loss"][40:] = np.geomspace(1e30, 1e37, 20)
    assert seen(NAME, run_of(losses)).steps == [41]


def test_a_rank_that_only_takes_longer_computes_the_same() -> None:
    assert state("rank_computes_otherwise", run_of(ranks("rank{}/step_time", [0.5, 0.52, 0.9, 0.5]))) is State.ABSENT


@pytest.mark.parametrize(("size", "present"), [(3e36, True), (4.0, False)])
def test_a_rank_that_runs_off_alone_before_all_are_lost_is_seen(size: float, present: bool) -> None:
    losses = ranks("loss/rank_{}", [0.5, 0.52, 0.51, 0.5])
    losses["loss/rank_2"][44] = size
    for loss in losses.values():
        loss[45:] = np.nan
    finding = seen(NAME, run_of(losses))
    assert (finding.state is State.PRESENT) is present
    if present:
        assert finding.values["rank"] == 2
        assert finding.steps == [45, 46]
        assert "3e+36" in finding.summary
