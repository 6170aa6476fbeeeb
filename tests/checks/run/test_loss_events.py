from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("factor", "width"), [(1.4, 1), (2.0, 3), (5.0, 15), (10.0, 30)])
def test_a_spike_that_recovers_is_present_at_its_step(factor: float, width: int, seed: int) -> None:
    loss = noisy(decay(400), 0.01, seed)
    loss[250 : 250 + width] *= factor
    finding = seen("loss_spike", run_of(loss=loss))
    assert finding.state is State.PRESENT
    assert abs(finding.steps[0] - 251) <= 1
    assert finding.values["recovered"] == 1
    assert finding.values["width_records"] == pytest.approx(width, abs=2)


@pytest.mark.parametrize(
    "loss",
    [
        [3.3, 3.3, 3.3, 7.0, 3.4, 3.4, 3.3, 3.3],
        [3.31, 3.28, 3.30, 3.27, 3.26, 3.25, 7.0, 3.4, 3.3, 3.24, 3.22, 3.21],
        [3.06, 3.11, 7.71],
        [6.44, 11.42, 7.16],
    ],
)
def test_a_spike_in_an_excerpt_of_a_few_records_is_present(loss: list[float]) -> None:
    assert state("loss_spike", run_of(loss=loss)) is State.PRESENT


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("size", "tails"), [(0.3, "normal"), (0.3, "lognormal")])
def test_a_noisy_curve_has_none(size: float, tails: str, seed: int) -> None:
    assert state("loss_spike", run_of(loss=noisy(decay(600, 2.0, 1.2), size, seed, tails))) is State.ABSENT


def test_heavy_tailed_noise_hardly_ever_has_one() -> None:
    found = [state("loss_spike", run_of(loss=noisy(decay(600, 2.0, 1.2), 0.05, seed, "t3"))) for seed in range(40)]
    assert found.count(State.PRESENT) <= 2


@pytest.mark.parametrize("loss", [[2.1, 1.8, 1.9, 1.5], [2.3, 1.9, 2.2, 1.7, 1.9, 1.5, 1.6, 1.2, 1.4, 1.1]])
def test_a_short_noisy_log_has_none(loss: list[float]) -> None:
    assert state("loss_spike", run_of(loss=loss)) is State.ABSENT


def test_to_where_the_loss_comes_down_is_told_in_numbers_and_not_that_all_is_as_before() -> None:
    loss = noisy(decay(400), 0.01)
    loss[250] *= 20
    loss[251:260] *= 5
    assert "is down to 8.08 after 5 records" in seen("loss_spike", run_of(loss=loss)).summary


def test_a_jump_that_stays_is_no_spike() -> None:
    loss = noisy(decay(300), 0.01)
    loss[200:] += 3
    assert state("loss_spike", run_of(loss=loss)) is State.ABSENT


def test_what_moved_with_the_spike_and_its_spacing_are_told() -> None:
    loss, norm = noisy(decay(400), 0.01), np.ones(400)
    loss[[100, 200, 300]] *= 2
    norm[[100, 200, 300]] = 50
    finding = seen("loss_spike", run_of(loss=loss, grad_norm=norm, learning_rate=np.full(400, 1e-3)))
    assert finding.values["count"] == 3
    assert finding.values["spacing"] == 100
    assert "grad_norm goes from about 1 to 50" in finding.summary
    assert "learning rate there is 0.001" in finding.summary


def test_of_a_policy_loss_it_cannot_be_told() -> None:
    assert state("loss_spike", run_of(loss=decay(50), kind="grpo")) is State.UNKNOWN


def test_a_lone_record_as_high_as_the_start_is_present_where_the_loss_is_nearly_zero() -> None:
    loss = noisy(decay(60, 1.6, 0.03, 12), 0.8, 3, "lognormal")
    loss[35] = 1.7
    assert seen("loss_spike", run_of(loss=loss)).steps == [36]


@pytest.mark.parametrize("seed", range(10))
def test_of_many_records_that_reach_up_none_is_a_lone_one(seed: int) -> None:
    assert state("loss_spike", run_of(loss=noisy(decay(60, 1.6, 0.03, 12), 0.8, seed, "lognormal"))) is State.ABSENT


def test_height_and_width_are_told_in_numbers() -> None:
    loss = noisy(decay(400), 0.01)
    loss[250:255] += 3
    values = seen("loss_spike", run_of(loss=loss, every=10)).values
    assert values["height"] == pytest.approx(3, rel=0.05)
    assert values["width_steps"] == pytest.approx(50, abs=20)


@pytest.mark.parametrize(
    ("metric", "usual", "there"),
    [("loss_scale", 65536.0, 32768.0), ("sequence_length", 512.0, 8192.0), ("learning_rate", 1e-4, 1e-3)],
)
def test_a_metric_that_moves_at_the_step_of_the_spike_is_told(metric: str, usual: float, there: float) -> None:
    loss, other = noisy(decay(400), 0.01), np.full(400, usual)
    loss[250:253] += 3
    other[250] = there
    finding = seen("loss_spike", run_of({metric: other}, loss=loss))
    assert finding.values[f"{metric}_before"] == pytest.approx(usual)
    assert finding.values[f"{metric}_there"] == pytest.approx(there)
    assert f"{metric} goes from" in finding.summary


def test_tokens_are_counted_per_record() -> None:
    loss, tokens = noisy(decay(400), 0.01), np.full(400, 1000.0)
    loss[250] += 3
    tokens[250] = 20_000
    finding = seen("loss_spike", run_of(loss=loss, num_tokens=np.cumsum(tokens)))
    assert finding.values["num_tokens per record_there"] == 20_000


def test_tokens_that_a_resumed_run_counts_anew_are_taken_by_record_all_the_same() -> None:
    """Source: TRL 1.16.0, whose SFTTrainer counts `num_tokens` of a resumed run from zero."""
    loss, tokens = noisy(decay(400), 0.01), np.full(400, 1000.0)
    loss[250] += 3
    tokens[250] = 20_000
    counted = np.concatenate([np.cumsum(tokens[:200]), np.cumsum(tokens[200:])])
    finding = seen("loss_spike", run_of(loss=loss, num_tokens=counted))
    assert finding.values["num_tokens per record_before"] == pytest.approx(1000)
    assert finding.values["num_tokens per record_there"] == pytest.approx(20_000)


def test_a_gradient_norm_that_rose_before_the_spike_is_told_with_its_step() -> None:
    loss, norm = noisy(decay(400), 0.01), noisy(np.ones(400), 0.02)
    loss[250:255] += 3
    norm[246:255] = 9
    finding = seen("loss_spike", run_of(loss=loss, grad_norm=norm))
    assert finding.values["grad_norm_moved_since"] == 247
    assert "and had left it by step 247" in finding.summary


def test_what_did_not_move_is_not_said_to() -> None:
    loss, length = noisy(decay(400), 0.01), noisy(np.full(400, 512.0), 0.1)
    loss[250:253] += 3
    finding = seen("loss_spike", run_of(loss=loss, seq_len=length, loss_scale=np.full(400, 1024.0)))
    assert not [name for name in finding.values if name.startswith(("seq_len", "loss_scale"))]


@pytest.mark.parametrize("records", [1, 2])
def test_a_lone_jump_in_a_thinned_log_that_still_falls_is_present(records: int) -> None:
    loss = noisy(decay(50, 2.3, 0.4, 4), 0.05, 4)
    loss[22 : 22 + records] *= 1.8
    finding = seen("loss_spike", run_of(loss=loss, every=5))
    assert finding.steps == [5 * 23]
    assert finding.values["width_records"] == records


@pytest.mark.parametrize("seed", range(20))
def test_a_thinned_log_that_only_falls_has_no_lone_jump(seed: int) -> None:
    assert state("loss_spike", run_of(loss=noisy(decay(50, 2.3, 0.4, 4), 0.08, seed), every=5)) is State.ABSENT


def test_a_jump_after_which_the_loss_stays_up_is_no_spike_that_the_log_cuts_off() -> None:
    run = run_of(loss=[*decay(10, 1.2, 0.7), 13.0, 26.6, 26.6, 26.6, 26.6])
    assert state("loss_spike", run) is State.UNKNOWN
    assert state("loss_divergence", run) is State.PRESENT


def _power(count: int, power: float) -> list[float | None]:
    return [(step + 1.0) ** -power for step in range(count)]


@pytest.mark.parametrize("count", [300, 1000, 50_000])
@pytest.mark.parametrize("power", [0.5, 1.0, 1.5])
def test_a_loss_that_only_falls_has_none_however_steeply_it_begins(power: float, count: int) -> None:
    assert state("loss_spike", run_of(loss=_power(count, power))) is State.ABSENT


def test_a_spike_in_a_steep_fall_is_still_present() -> None:
    loss = _power(1000, 1.0)
    loss[8] = 2.0
    assert seen("loss_spike", run_of(loss=loss)).values["peak"] == 2.0


@pytest.mark.parametrize("seed", range(5))
def test_a_jump_back_to_half_of_the_start_is_high(seed: int) -> None:
    loss = noisy(decay(300, 4.0, 1.0), 0.02, seed)
    loss[200] += 2
    finding = seen("loss_spike_high", run_of(loss=loss))
    assert finding.steps == [201]
    assert finding.values["share"] == pytest.approx(0.55, abs=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_a_small_jump_as_large_runs_have_is_not(seed: int) -> None:
    loss = noisy(decay(300, 11.0, 2.5), 0.02, seed)
    loss[200] += 0.8
    assert state("loss_spike", run_of(loss=loss)) is State.PRESENT
    assert state("loss_spike_high", run_of(loss=loss)) is State.ABSENT


def test_of_a_loss_that_does_not_jump_it_cannot_be_told() -> None:
    assert state("loss_spike_high", run_of(loss=noisy(decay(300, 4.0, 1.0), 0.02))) is State.UNKNOWN


def test_of_a_loss_below_zero_the_size_counts() -> None:
    loss = noisy(np.full(40, -5.0), 0.01)
    loss[25] = 4e4
    assert state("loss_spike_high", run_of(loss=loss)) is State.PRESENT


def test_of_a_log_density_a_jump_to_where_it_once_was_cannot_be_told() -> None:
    loss = noisy(decay(300, 5.0, -9.0), 0.02)
    loss[200] += 2.5
    assert state("loss_spike_high", run_of(loss=loss)) is State.UNKNOWN


SEEDS = range(3)


def calm(seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return 1 + 2 * np.exp(-np.arange(300) / 60) + np.random.default_rng(seed).normal(0, 0.03, 300)


def spiked(*at: int, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    curve = calm(seed)
    curve[list(at)] += 4
    return curve


@pytest.mark.parametrize("seed", SEEDS)
def test_loss_spike_single_is_seen(seed: int) -> None:
    assert state("loss_spike_single", run_of(loss=spiked(150, seed=seed))) is State.PRESENT


@pytest.mark.parametrize("seed", SEEDS)
def test_loss_spike_single_is_absent_where_the_loss_jumps_otherwise(seed: int) -> None:
    assert state("loss_spike_single", run_of(loss=spiked(80, 150, 230, seed=seed))) is State.ABSENT


@pytest.mark.parametrize("seed", SEEDS)
def test_loss_spike_single_is_not_judged_where_the_loss_does_not_jump(seed: int) -> None:
    assert state("loss_spike_single", run_of(loss=calm(seed))) is State.UNKNOWN


def test_of_a_log_density_whether_one_jump_is_the_only_one_cannot_be_told() -> None:
    loss = noisy(decay(300, 5.0, -9.0), 0.02)
    loss[200] += 4
    assert state("loss_spike", run_of(loss=loss)) is State.PRESENT
    assert state("loss_spike_single", run_of(loss=loss)) is State.UNKNOWN


@pytest.mark.parametrize("seed", SEEDS)
def test_loss_spikes_recur_is_seen(seed: int) -> None:
    assert state("loss_spikes_recur", run_of(loss=spiked(80, 150, 230, seed=seed))) is State.PRESENT


@pytest.mark.parametrize("seed", SEEDS)
def test_loss_spikes_recur_is_absent_where_the_loss_jumps_otherwise(seed: int) -> None:
    assert state("loss_spikes_recur", run_of(loss=spiked(150, seed=seed))) is State.ABSENT


@pytest.mark.parametrize("seed", SEEDS)
def test_loss_spikes_recur_is_not_judged_where_the_loss_does_not_jump(seed: int) -> None:
    assert state("loss_spikes_recur", run_of(loss=calm(seed))) is State.UNKNOWN


def test_each_jump_is_told_with_its_step_height_and_width() -> None:
    finding = seen("loss_spikes_recur", run_of(loss=spiked(80, 150, 230)))
    assert "70 to 80 steps apart" in finding.summary
    assert "at 81 from " in finding.summary
    assert finding.values["highest"] == pytest.approx(4, abs=0.3)


def spiked_longer(*at: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    curve = 1 + 2 * np.exp(-np.arange(400) / 60) + np.random.default_rng(0).normal(0, 0.03, 400)
    curve[list(at)] += 4
    return curve


def test_jumps_at_even_distances_are_seen() -> None:
    assert state("loss_spikes_regular", run_of(loss=spiked_longer(80, 160, 240, 320))) is State.PRESENT


def test_jumps_at_any_distance_are_not() -> None:
    assert state("loss_spikes_regular", run_of(loss=spiked_longer(80, 110, 240, 330))) is State.ABSENT


@pytest.mark.parametrize("at", [(), (100,), (100, 200)])
def test_fewer_than_three_jumps_cannot_tell(at: tuple[int, ...]) -> None:
    assert state("loss_spikes_regular", run_of(loss=spiked_longer(*at))) is State.UNKNOWN


def test_a_distance_that_is_no_epoch_is_not_said_to_be_one() -> None:
    epoch = np.arange(1, 401) / 55
    assert (
        "epoch" not in seen("loss_spikes_regular", run_of(loss=spiked_longer(80, 160, 240, 320), epoch=epoch)).summary
    )


def test_a_jump_in_the_steep_fall_is_found_one_distance_before() -> None:
    steps = np.arange(300)
    curve = 0.2 + 4 * np.exp(-steps / 20) + np.random.default_rng(0).normal(0, 0.02, 300)
    curve[[38, 39, 113, 114, 188, 189, 263, 264]] += 1.2
    finding = seen("loss_spikes_regular", run_of(loss=curve))
    assert finding.steps[0] == 39
    assert finding.values["count"] == 4


def test_no_jump_is_made_up_one_distance_before() -> None:
    finding = seen("loss_spikes_regular", run_of(loss=spiked_longer(140, 240, 340)))
    assert finding.steps[0] == 141
    assert finding.values["count"] == 3


def jumping(height: float, fading: float, records: int = 1, seed: int = 0, mark: float = 0.0) -> NDArray[np.float64]:
    """Return a loss that jumps at record 200, stays up for some records, fades within others and leaves a mark."""
    loss = noisy(decay(400), 0.02, seed)
    loss[200 : 200 + records] += height
    after = np.arange(400 - 200 - records)
    loss[200 + records :] += height * np.exp(-(after + 1) / fading) + mark
    return loss


@pytest.mark.parametrize("form", ["spike_fades", "loss_spike_high"])
def test_of_a_loss_that_does_not_jump_no_form_is_judged(form: str) -> None:
    assert state(form, run_of(loss=noisy(decay(400), 0.05), grad_norm=noisy(np.ones(400), 0.3))) is State.UNKNOWN


@pytest.mark.parametrize("seed", range(5))
def test_a_jump_that_comes_back_over_several_records_fades(seed: int) -> None:
    assert state("spike_fades", run_of(loss=jumping(3.0, 6.0, 2, seed))) is State.PRESENT
    assert state("spike_fades", run_of(loss=jumping(3.0, 0.01, 2, seed))) is State.ABSENT


def test_where_records_are_many_steps_apart_only_what_fades_over_several_of_them_is_told() -> None:
    assert state("spike_fades", run_of(loss=jumping(3.0, 6.0), every=50)) is State.PRESENT
    assert state("spike_fades", run_of(loss=jumping(3.0, 0.01), every=50)) is State.UNKNOWN
    assert state("spike_fades", run_of(loss=jumping(3.0, 6.0)[:201])) is State.UNKNOWN


def test_a_schedule_that_goes_on_as_before_did_not_move_where_the_loss_jumps() -> None:
    loss = 1.2 + np.zeros(60)
    loss[30] = 4.2
    falls = np.linspace(2e-5, 1e-6, 60)
    assert "learning_rate goes from" not in seen("loss_spike", run_of(loss=loss, learning_rate=falls)).summary
    lowered = np.where(np.arange(60) >= 30, falls / 3, falls)
    assert "learning_rate goes from" in seen("loss_spike", run_of(loss=loss, learning_rate=lowered)).summary
    raised = np.where(np.arange(60) >= 29, 0.16, 0.002)
    assert "learning_rate goes from" in seen("loss_spike", run_of(loss=loss, learning_rate=raised)).summary


def test_a_rate_that_comes_back_is_stated_from_its_last_record() -> None:
    rates = [5e-4 * (1 + np.cos(np.pi * (at % 100) / 100)) for at in range(200)]
    loss = np.where(np.arange(200) < 100, 1.0, 1.0 + 2 * 0.5 ** ((np.arange(200) - 100) / 4.0))
    spike = seen("loss_spike", run_of(loss=noisy(loss, 0.01), learning_rate=rates))
    assert spike.values["learning_rate_before"] == pytest.approx(rates[99])


@pytest.mark.parametrize(("ends", "at", "answer"), [(0.2, 81, False), (0.2, 85, True), (0.01, 81, True)])
def test_a_last_batch_of_an_epoch_that_is_off_as_such_batches_of_fewer_rows_are_is_no_jump(
    ends: float, at: int, answer: bool
) -> None:
    noise = np.random.default_rng(0).normal(0, 0.03, 108)
    off = {step: ends * (-1) ** step for step in range(8, 108, 9)}
    values = [0.85 + noise[step] + off.get(step, 0.0) for step in range(108)]
    values[at - 1] = 1.4
    loss = {float(step): value for step, value in enumerate(values)}
    run = run_of({"loss": loss, "epoch": {step: step // 9 for step in loss}})
    assert (state("loss_spike", run) is State.PRESENT) is answer


@pytest.mark.parametrize("noise", [0.01, 0.03])
@pytest.mark.parametrize("times", [1 / 3, 0.5, 1.6])
def test_a_step_to_another_level_is_no_jump_at_the_record_before_it_or_behind(times: float, noise: float) -> None:
    level = np.where(np.arange(120) < 60, 3.0, 3.0 * times)
    assert state("loss_spike", run_of(loss=noisy(level, noise))) is State.ABSENT
    level[40] = 7.0
    assert seen("loss_spike", run_of(loss=noisy(level, noise))).steps[0] == 41
