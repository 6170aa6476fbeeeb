from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import Curve, decay, noisy, run_of, run_of_records, seen, state


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("at", "lasting"), [(350, 5), (200, 150), (100, 20), (300, 90)])
def test_a_rise_that_stays_is_present_from_where_it_begins(at: int, lasting: int, seed: int) -> None:
    loss = decay(400)
    loss[at:] = loss[at] + 3 * np.minimum(np.arange(400 - at) / lasting, 1)
    finding = seen("loss_divergence", run_of(loss=noisy(loss, 0.02, seed)))
    assert finding.state is State.PRESENT
    assert abs(finding.steps[0] - at) <= 8 + lasting / 15


@pytest.mark.parametrize("loss", [[6.37, 6.6, 7.31, 9.12, 10.24], [3.32, 3.42, 3.68, 7.27, 4.13, 7.6, 7.02]])
def test_a_climb_at_the_end_of_an_excerpt_is_present(loss: list[float]) -> None:
    assert state("loss_divergence", run_of(loss=loss)) is State.PRESENT


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("tails", ["normal", "lognormal", "t3"])
def test_a_noisy_plateau_does_not_diverge(tails: str, seed: int) -> None:
    assert state("loss_divergence", run_of(loss=noisy(np.full(300, 1.3), 0.15, seed, tails))) is not State.PRESENT


def test_too_few_losses_are_counted_in_the_right_number() -> None:
    assert seen("loss_divergence", run_of(loss=[2.0])).summary == "loss has 1 finite value here; 5 are needed"


def test_a_spike_that_recovers_is_none() -> None:
    loss = decay(300)
    loss[150:180] *= 3
    assert state("loss_divergence", run_of(loss=loss)) is State.ABSENT


def test_a_noisy_excerpt_that_falls_is_none() -> None:
    assert state("loss_divergence", run_of(loss=[2.1, 1.9, 1.2, 1.9, 2.0])) is State.ABSENT


def test_four_records_cannot_tell() -> None:
    assert state("loss_divergence", run_of(loss=[1.0, 2.0, 3.0, 4.0])) is State.UNKNOWN


def test_a_loss_that_explodes_by_powers_rises_from_the_first_of_them_on() -> None:
    loss = [0.06, 0.11, 0.05, 5e19, 4e20, 2e21, 8e21, 3e22]
    assert seen("loss_divergence", run_of(loss=loss)).steps == [4]


def test_epoch_means_that_go_up_four_times_in_a_row_are_present() -> None:
    loss = [1.62, 1.25, 1.14, 1.12, 1.14, 1.16, 1.18, 1.21]
    finding = seen("loss_divergence", run_of_records([{"epoch": 1 + at, "loss": one} for at, one in enumerate(loss)]))
    assert finding.state is State.PRESENT
    assert finding.steps == [5]


def test_epoch_means_that_go_up_and_down_are_absent() -> None:
    loss = [1.62, 1.25, 1.14, 1.12, 1.15, 1.13, 1.14, 1.12]
    run = run_of_records([{"epoch": 1 + at, "loss": one} for at, one in enumerate(loss)])
    assert state("loss_divergence", run) is State.ABSENT


@pytest.mark.parametrize("lowest", [0.05, 0.5])
def test_a_short_curve_that_swings_back_record_by_record_is_present(lowest: float) -> None:
    loss = np.array([1.0, 0.85, 0.4, 0.15, 0.0, 0.05, 0.3, 0.55, 0.8, 0.9]) * (1.6 - lowest) + lowest
    finding = seen("loss_divergence", run_of(loss=loss))
    assert finding.state is State.PRESENT
    assert finding.steps == [6]


def test_a_short_curve_that_climbs_to_many_times_its_lowest_is_present() -> None:
    finding = seen("loss_divergence", run_of(loss=[15.5, 13.0, 3.8, 2.4, 1.4, 5.8, 7.1, 10.0]))
    assert finding.state is State.PRESENT
    assert finding.steps == [6]


@pytest.mark.parametrize(
    "loss",
    [
        [2.0, 1.1, 0.9, 0.6, 0.3, 0.31, 0.35, 0.38, 0.4, 0.45],
        [2.0, 0.4, 0.3, 0.9, 0.5, 1.1, 0.4, 0.9, 1.2, 1.0],
        [2.0, 0.2, 0.01, 0.002, 0.001, 0.003, 0.005, 0.008],
    ],
    ids=["a small part of what was won", "up and down", "many times nearly nothing"],
)
def test_a_short_curve_that_does_not_swing_back_is_absent(loss: list[float]) -> None:
    assert state("loss_divergence", run_of(loss=loss)) is State.ABSENT


def test_a_loss_that_rises_with_the_time_of_its_steps_cannot_tell() -> None:
    loss = [3.0, 3.4, 3.1, 4.5, 6.0, 7.5, 9.0, 8.6, 10.0, 11.5, 12.0, 13.5]
    longer = [0.2 + one / 20 for one in loss]
    assert state("loss_divergence", run_of(loss=loss, step_time=longer)) is State.UNKNOWN
    assert state("loss_divergence", run_of(loss=loss, step_time=[0.2] * 12)) is State.PRESENT


def hump(height: float, start: float = 4.5) -> np.ndarray:
    steps = np.arange(300)
    return decay(300, start, 3.0) + height * np.exp(-(((steps - 80) / 25) ** 2))


@pytest.mark.parametrize("height", [5, 50, 400])
def test_a_climb_far_above_the_start_that_comes_back_is_present_from_where_it_begins(height: float) -> None:
    finding = seen("loss_hump", run_of(loss=noisy(hump(height), 0.02)))
    assert finding.state is State.PRESENT
    assert 20 <= finding.steps[0] <= 80
    assert finding.values["factor"] > 1.4


def test_a_climb_that_stays_up_is_a_divergence_instead() -> None:
    run = run_of(loss=noisy(np.concatenate([decay(150), np.full(150, 20.0)]), 0.02))
    assert state("loss_divergence", run) is State.PRESENT
    assert seen("loss_hump", run).summary == "loss_divergence is seen instead"


def test_a_rise_to_the_level_at_the_start_is_absent() -> None:
    assert state("loss_hump", run_of(loss=noisy(hump(1.2), 0.02))) is State.ABSENT


@pytest.mark.parametrize("tails", ["normal", "lognormal", "t3"])
def test_noise_and_single_outliers_are_absent(tails: str) -> None:
    loss = noisy(decay(300), 0.2, 1, tails)
    loss[100] = 90.0
    assert state("loss_hump", run_of(loss=loss)) is State.ABSENT


def test_of_a_handful_of_records_and_of_a_policy_it_cannot_be_told() -> None:
    assert state("loss_hump", run_of(loss=[4.0, 9.0, 9.0, 3.0])) is State.UNKNOWN
    assert state("loss_hump", run_of(loss=hump(50), kind="ppo")) is State.UNKNOWN


@pytest.mark.parametrize("seed", range(6))
def test_wide_noise_from_the_first_record_on_is_no_hump(seed: int) -> None:
    """As in tuning a diffusion model, where each record is one batch at other noise levels."""
    loss = np.clip(np.exp(-2.3 + 0.8 * np.random.default_rng(seed).standard_normal(500)), 0, 1)
    assert state("loss_hump", run_of(loss=loss)) is State.ABSENT


FALL = decay(400, 10.8, 3.0, 12.0)
AT = np.arange(400)


@pytest.mark.parametrize("seed", range(5))
def test_a_loss_that_turns_half_way_and_climbs_by_a_tenth_is_present_from_there(seed: int) -> None:
    found = seen("loss_rises", run_of(loss=noisy(FALL + 0.0018 * np.maximum(0, AT - 220), 0.02, seed)))
    assert found.state is State.PRESENT
    assert 180 <= found.steps[0] <= 260


def test_a_step_up_as_with_other_data_is_absent() -> None:
    assert state("loss_rises", run_of(loss=noisy(FALL + 0.3 * (AT > 220), 0.02))) is State.ABSENT


def test_a_loss_that_falls_to_the_end_is_absent() -> None:
    assert state("loss_rises", run_of(loss=noisy(decay(400, 10.8, 3.0, 4.0), 0.02))) is State.ABSENT


def test_a_hump_is_not_present() -> None:
    hump = 0.3 * np.exp(-(((AT - 250) / 30) ** 2))
    assert state("loss_rises", run_of(loss=noisy(FALL + hump, 0.02))) is not State.PRESENT


@pytest.mark.parametrize("seed", range(4))
def test_a_slow_rise_from_beginning_to_end_is_present(seed: int) -> None:
    finding = seen(
        "loss_rises", run_of(loss=noisy(np.linspace(3.67, 3.74, 1000), 0.01, seed), eval_loss={1: 3.5, 900: 3.6})
    )
    assert finding.state is State.PRESENT
    assert finding.values["rise"] == pytest.approx(0.07, rel=0.2)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("tails", ["normal", "t3"])
def test_a_level_curve_is_absent(tails: str, seed: int) -> None:
    assert state("loss_rises", run_of(loss=noisy(np.full(1000, 3.7), 0.02, seed, tails))) is not State.PRESENT


@pytest.mark.parametrize("seed", range(4))
def test_a_rise_within_the_noise_is_absent(seed: int) -> None:
    assert state("loss_rises", run_of(loss=noisy(np.linspace(3.7, 3.72, 300), 0.05, seed))) is not State.PRESENT


def test_a_loss_that_falls_first_is_absent() -> None:
    loss = np.concatenate([decay(500), np.linspace(1.5, 1.6, 100)])
    assert state("loss_rises", run_of(loss=noisy(loss, 0.01))) is State.ABSENT


def test_a_divergence_says_more() -> None:
    loss = np.concatenate([decay(100), np.linspace(1.5, 9, 300)])
    assert state("loss_rises", run_of(loss=noisy(loss, 0.01))) is State.UNKNOWN


def test_a_short_log_cannot_tell() -> None:
    assert state("loss_rises", run_of(loss=np.linspace(3, 4, 20))) is State.UNKNOWN


def test_twelve_records_in_order_rise() -> None:
    loss = [10.38, 10.47, 10.52, 10.58, 10.63, 10.69, 10.75, 10.83, 10.89, 10.95, 10.99, 11.0]
    assert state("loss_rises", run_of(loss=loss)) is State.PRESENT


@pytest.mark.parametrize("seed", range(10))
def test_twelve_records_that_only_wander_do_not(seed: int) -> None:
    assert state("loss_rises", run_of(loss=noisy(np.full(12, 2.0), 0.05, seed))) is State.ABSENT


def rising(norm_factor: float = 1.0, at: int = 250) -> Run:
    """Return a run under a cosine schedule whose loss rises for good, and the gradient norm with it by a factor."""
    loss, norm = decay(400), noisy(np.ones(400), 0.3)
    loss[at:] += 2 * np.minimum(np.arange(400 - at) / 20, 1)
    norm[at:] *= norm_factor
    rate = 1e-3 * np.minimum(np.arange(1, 401) / 40, 0.5 + 0.5 * np.cos(np.arange(400) / 400 * np.pi))
    return run_of(loss=noisy(loss, 0.02), grad_norm=norm, learning_rate=rate)


@pytest.mark.parametrize("name", ["margin", "train_beta", "kl_weight"])
def test_a_loss_that_rises_with_a_weight_that_a_plan_raises_cannot_tell(name: str) -> None:
    loss = noisy(np.linspace(1.0, 6.0, 80), 0.05)
    plan = np.minimum(np.arange(80) * 0.05, 3.0)
    assert state("loss_divergence", run_of({name: plan}, loss=loss)) is State.UNKNOWN
    assert state("loss_divergence", run_of({name: noisy(plan, 0.02)}, loss=loss)) is State.PRESENT
    assert state("loss_divergence", run_of({name: np.full(80, 3.0)}, loss=loss)) is State.PRESENT


@pytest.mark.parametrize("count", [np.arange(80.0), np.arange(80.0) * 128, np.arange(80.0) + 7])
def test_a_counter_by_any_name_is_no_plan_that_raises_the_loss(
    count: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> None:
    loss = noisy(np.linspace(1.0, 6.0, 80), 0.05)
    assert state("loss_divergence", run_of({"zork_total": count}, loss=loss)) is State.PRESENT


def test_a_flat_loss_that_scatters_as_that_of_flow_matching_cannot_be_judged_and_a_quiet_one_can() -> None:
    drawn = 0.34 + 0.08 * np.random.default_rng(0).standard_normal(2000)
    assert state("loss_plateau", run_of(loss=np.abs(drawn), learning_rate=[1e-4] * 2000)) is State.UNKNOWN
    quiet = 0.34 + 0.008 * np.random.default_rng(0).standard_normal(2000)
    assert state("loss_plateau", run_of(loss=quiet, learning_rate=[1e-4] * 2000)) is State.PRESENT


def test_an_accuracy_that_is_high_at_once_says_nothing_where_the_auc_is_that_of_a_guess() -> None:
    evaluated: dict[str, Curve] = {
        "loss": noisy([0.1385] * 100, 0.01),
        "eval_accuracy": dict.fromkeys(range(10, 101, 10), 0.9661),
    }
    assert state("loss_plateau", run_of(evaluated)) is State.UNKNOWN
    guesses = {step: 0.5 + 0.002 * (step % 3 - 1) for step in range(10, 101, 10)}
    finding = seen("loss_plateau", run_of({**evaluated, "eval_auc": guesses}))
    assert finding.state is State.PRESENT
    assert "a guess has 0.5" in finding.summary
