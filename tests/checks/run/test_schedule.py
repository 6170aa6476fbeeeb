from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.models import State
from tests.runs import decay, run_of, run_of_records, seen, state

AT = np.arange(200) / 200
COSINE = 0.5 + 0.5 * np.cos(np.pi * AT)
WARM = np.minimum((np.arange(200) + 1) / 20, 1)
PLAN: dict[str, Scalar] = {"learning_rate": 1e-3, "max_steps": 200, "lr_scheduler_type": "cosine"}
OUTCOMES = ("lr_above_configured", "lr_below_configured", "lr_hardly_decays", "lr_decays_early")


def present(run_rate: Floats, **config: Scalar) -> list[str]:
    run = run_of(learning_rate=run_rate, loss=decay(len(run_rate)), config={**PLAN, **config})
    return [name for name in OUTCOMES if state(name, run) is State.PRESENT]


@pytest.mark.parametrize("factor", [2.5, 10.0, 100.0])
def test_a_rate_that_goes_far_above_the_configured_peak_is_present_with_its_step(factor: float) -> None:
    finding = seen("lr_above_configured", run_of(learning_rate=factor * 1e-3 * WARM, config={"learning_rate": 1e-3}))
    assert finding.state is State.PRESENT
    assert finding.steps == [20]
    assert finding.values["factor"] == pytest.approx(factor)


@pytest.mark.parametrize("factor", [0.1, 0.01])
def test_a_rate_that_stays_far_below_the_configured_peak_is_present(factor: float) -> None:
    assert present(factor * 1e-3 * COSINE) == ["lr_below_configured"]


@pytest.mark.parametrize(
    ("factor", "config"),
    [
        (8.0, {"world_size": 8}),
        (4.0, {"gradient_accumulation_steps": 4}),
        (4.0, {"batch_size": 1024}),
        (2.0, {"batch_size": 1024}),
        (0.125, {"batch_size": 32}),
        (1000.0, {}),
        (25.0, {"lr_scheduler_type": "OneCycleLR"}),
        (25.0, {"optim": "prodigy"}),
    ],
    ids=["devices", "accumulation", "batch", "root of batch", "small batch", "thousandths", "one cycle", "own rate"],
)
def test_a_rate_that_trainers_scale_is_not_present(factor: float, config: dict[str, Scalar]) -> None:
    base = {"learning_rate": 1e-3, "max_steps": 200, **config}
    run = run_of(learning_rate=factor * 1e-3 * WARM, config=base)
    assert State.PRESENT not in {state("lr_above_configured", run), state("lr_below_configured", run)}


def test_a_log_that_ends_in_the_warmup_or_begins_late_shows_no_peak() -> None:
    early = run_of(learning_rate=1e-5 * WARM[:10], config={"learning_rate": 1e-3, "max_steps": 200})
    assert state("lr_below_configured", early) is State.UNKNOWN
    late = run_of_records(
        [{"step": 150 + step, "learning_rate": 1e-3 * COSINE[150 + step]} for step in range(50)], config=PLAN
    )
    assert state("lr_below_configured", late) is State.UNKNOWN


def test_another_group_of_parameters_with_the_configured_rate_is_enough() -> None:
    rates = {"lr-AdamW/pg1": 1e-5 * COSINE, "lr-AdamW/pg2": 1e-3 * COSINE}
    assert state("lr_below_configured", run_of(rates, config=PLAN)) is not State.PRESENT


@pytest.mark.parametrize("kind", ["cosine", "linear", "polynomial", "cosine_with_min_lr", "CosineAnnealingLR"])
def test_a_rate_that_stays_at_its_peak_where_a_decay_is_configured_is_present(kind: str) -> None:
    assert present(1e-3 * WARM, lr_scheduler_type=kind) == ["lr_hardly_decays"]


def test_a_cosine_that_is_as_long_as_eight_runs_is_present() -> None:
    assert present(1e-3 * (0.5 + 0.5 * np.cos(np.pi * AT / 8))) == ["lr_hardly_decays"]


def test_a_cosine_that_is_four_times_too_fast_is_present_before_it_ends() -> None:
    assert present(1e-3 * (0.5 + 0.5 * np.cos(np.pi * AT[:48] * 4))) == ["lr_decays_early"]


def test_a_cosine_that_is_stepped_on_beyond_its_length_and_comes_back_is_present() -> None:
    assert present(1e-3 * (0.5 + 0.5 * np.cos(np.pi * AT * 1.8))) == ["lr_hardly_decays"]


@pytest.mark.parametrize("length", [200, 120, 40, 12, 3])
@pytest.mark.parametrize(
    ("rate", "kind"),
    [
        (COSINE * WARM, "cosine"),
        ((1 - AT) * WARM, "linear"),
        (0.1 + 0.9 * COSINE, "cosine"),
        (np.sqrt(1 - AT), "polynomial"),
        (np.full(200, 1.0), "constant"),
        (WARM, "constant_with_warmup"),
        (np.minimum(1, (1 - AT) / 0.1), "warmup_stable_decay"),
        (0.5 + 0.5 * np.cos(np.pi * (AT * 3 % 1)), "cosine_with_restarts"),
        (0.5 + 0.5 * np.cos(2 * np.pi * AT * 3), "cyclic"),
        (0.1 ** np.floor(AT * 3), "multistep"),
        (np.full(200, 1.0), "reduce_lr_on_plateau"),
        (np.full(200, 1.0), "linear_warmup"),
        (np.full(200, 1.0), "LinearLR"),
    ],
)
def test_a_schedule_that_does_what_it_is_configured_to_is_not_present(rate: Floats, kind: str, length: int) -> None:
    assert present(1e-3 * rate[:length], lr_scheduler_type=kind) == []


def test_a_schedule_of_its_own_length_is_not_measured_by_the_plan() -> None:
    rate = 1e-3 * (0.5 + 0.5 * np.cos(np.pi * np.minimum(AT * 2, 1)))
    assert present(rate[:80], lr_decay_steps=100) == []


def test_a_rate_rounded_to_a_single_digit_is_judged_only_where_more_than_rounding_is_missing() -> None:
    assert present(np.round(1e-3 * COSINE[:140], 3)) == []
    assert present(np.full(200, 1e-3)) == ["lr_hardly_decays"]


def test_a_run_that_stops_early_need_not_have_decayed() -> None:
    assert present(np.full(60, 1e-3) * COSINE[:60]) == []
    assert present(np.full(60, 1e-3)) == []


def test_without_a_configured_schedule_or_peak_it_cannot_be_told() -> None:
    run = run_of(learning_rate=np.full(200, 1e-3))
    assert {state(name, run) for name in OUTCOMES} == {State.UNKNOWN}


def test_a_rate_that_goes_back_to_its_peak_from_the_middle_of_its_schedule_is_present_with_its_step() -> None:
    rate = 1e-3 * np.concatenate([COSINE[:100], COSINE[:100]])
    finding = seen("lr_jump", run_of(learning_rate=rate))
    assert finding.state is State.PRESENT
    assert finding.steps == [101]


def test_a_schedule_that_had_run_down_and_begins_anew_is_remarked_only() -> None:
    rate = 1e-3 * (0.5 + 0.5 * np.cos(np.pi * (AT * 2 % 1)))
    for every in (1, 5, 10):
        finding = seen("lr_jump", run_of(learning_rate=rate[::every]))
        assert finding.state is State.ABSENT
        assert finding.summary


def test_a_schedule_that_had_run_down_and_begins_anew_above_its_peak_is_present() -> None:
    rate = 1e-3 * np.concatenate([COSINE, 3 * COSINE])
    assert state("lr_jump", run_of(learning_rate=rate)) is State.PRESENT


def test_a_second_warmup_after_a_resume_is_present() -> None:
    first = [{"step": step + 1, "learning_rate": COSINE[step]} for step in range(120)]
    second = [{"step": step + 1, "learning_rate": min(1, (step - 99) / 4)} for step in range(100, 200)]
    assert state("lr_jump", run_of_records([*first, *second])) is State.PRESENT


def test_a_sudden_fall_out_of_a_smooth_schedule_is_present() -> None:
    rate = COSINE.copy()
    rate[80:] *= 0.1
    assert state("lr_jump", run_of(learning_rate=rate)) is State.PRESENT


def test_configured_restarts_are_remarked_only() -> None:
    rate = 0.5 + 0.5 * np.cos(np.pi * (AT * 2 % 1))
    finding = seen("lr_jump", run_of(learning_rate=rate, config={"lr_scheduler_type": "cosine_with_restarts"}))
    assert finding.state is State.ABSENT
    assert finding.summary


@pytest.mark.parametrize(
    "rate",
    [
        COSINE * np.minimum((AT + 0.005) / 0.05, 1),
        1 - AT,
        np.minimum(1, (1 - AT) / 0.1),
        np.full(200, 1.0),
        0.1 ** np.floor(AT * 3),
        np.interp(AT, [0, 0.4, 1], [0.04, 1, 0]),
    ],
    ids=["warmup and cosine", "linear", "stable then decay", "constant", "stages", "one cycle"],
)
def test_a_schedule_without_jumps_is_absent(rate: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    assert state("lr_jump", run_of(learning_rate=3e-4 * rate)) is State.ABSENT


def test_without_a_rate_it_cannot_be_told() -> None:
    assert state("lr_jump", run_of(loss=[1.0] * 20)) is State.UNKNOWN


def test_a_second_warmup_begins_where_the_rate_drops() -> None:
    cosine = 1e-3 * (1 + np.cos(np.linspace(0, 2, 100))) / 2
    again = np.concatenate([np.linspace(5e-5, 1e-3, 10), cosine[:60]])
    finding = seen("lr_jump", run_of(learning_rate=np.concatenate([cosine, again])))
    assert finding.state is State.PRESENT
    assert finding.steps == [101]
    assert "back up to" in finding.summary


def test_a_jump_ends_at_the_rate_of_the_record_where_it_is_made() -> None:
    length = 100
    rates = [1e-3 * (1 + math.cos(math.pi * (at % length) / length)) / 2 for at in range(3 * length)]
    jump = seen("lr_jump", run_of(learning_rate=rates))
    assert jump.steps == [length + 1]
    assert jump.values["after"] == 1e-3
    assert "to 0.001 at step 101" in jump.summary


def test_a_jump_that_takes_several_records_names_the_record_of_its_top() -> None:
    rates = [*np.linspace(1.1e-3, 1e-3, 60), 1.4e-3, 2e-3, 2.8e-3, *np.linspace(2.8e-3, 2.7e-3, 60)]
    assert "from 0.001 to 0.0028 at step 61 by 63" in seen("lr_jump", run_of(learning_rate=rates)).summary


def test_a_rate_that_waits_for_the_first_step_of_a_loss_scaler_does_not_jump() -> None:
    rate = np.concatenate([np.full(4, 4e-5), 2e-4 * np.arange(1, 11), 2e-3 * np.linspace(1, 0.05, 46)])
    skipped = {5.0 * (at + 1): 5.0 * (at < 4) for at in range(60)}
    waiting = run_of(learning_rate=rate, skipped_iterations=skipped, every=5)
    assert state("lr_jump", waiting) is State.ABSENT
    none = run_of(learning_rate=rate, skipped_iterations=dict.fromkeys(skipped, 0.0), every=5)
    assert state("lr_jump", none) is State.PRESENT


def test_a_triangular_cycle_is_no_jump() -> None:
    cycle = [1e-4 + 1e-3 * abs(1 - (at * 0.06) % 2) for at in range(150)]
    assert state("lr_jump", run_of(learning_rate=cycle)) is State.ABSENT


@pytest.mark.parametrize("lengths", [(40, 40, 40, 40), (20, 40, 80)])
def test_restarts_at_even_or_doubling_distances_are_a_plan(lengths: tuple[int, ...]) -> None:
    rates = [1e-3 * (1 + math.cos(math.pi * at / length)) for length in lengths for at in range(length)]
    assert state("lr_jump", run_of(learning_rate=rates)) is State.ABSENT


def test_a_rate_that_goes_above_its_first_peak_at_even_distances_is_no_plan() -> None:
    rates = [10**again * 1e-3 * (1 + math.cos(math.pi * at / 40)) for again in range(3) for at in range(40)]
    assert state("lr_jump", run_of(learning_rate=rates)) is State.PRESENT


def test_restarts_that_fall_between_two_records_are_remarked_only() -> None:
    rates = [
        1e-3,
        8.4e-4,
        4.5e-4,
        9.5e-5,
        9.9e-4,
        7.5e-4,
        3.5e-4,
        4.3e-5,
        9.6e-4,
        6.6e-4,
        2.5e-4,
        1.1e-5,
        9.1e-4,
        5.5e-4,
    ]
    assert state("lr_jump", run_of(learning_rate=[*rates, 1e-3, 6e-4])) is State.ABSENT


def test_a_warmup_that_moves_once_per_epoch_is_no_jump() -> None:
    epochs = [1e-5, 7e-4, 1.3e-3, *(1e-3 * (1 + math.cos(math.pi * at / 20)) for at in range(3, 20))]
    assert state("lr_jump", run_of(learning_rate=np.repeat(epochs, 5))) is State.ABSENT


def test_a_jump_of_a_rate_that_moves_once_per_epoch_is_present() -> None:
    epochs = [1e-3 * (1 + math.cos(math.pi * at / 20)) for at in (*range(12), *range(8))]
    assert state("lr_jump", run_of(learning_rate=np.repeat(epochs, 5))) is State.PRESENT


@pytest.mark.parametrize("length", [4, 12])
def test_a_rate_that_a_plateau_lowers_again_and_again_is_one_of_stages(length: int) -> None:
    rate = np.concatenate([np.full(12, 0.02), np.repeat(0.02 * 0.1 ** np.arange(1, 10), length)])
    assert state("lr_jump", run_of(learning_rate=rate)) is State.ABSENT


def test_restarts_of_which_each_is_lower_are_a_plan() -> None:
    rates = [0.6**again * 1e-3 * (1 + math.cos(math.pi * at / 30)) for again in range(4) for at in range(30)]
    assert state("lr_jump", run_of(learning_rate=rates)) is State.ABSENT


def test_triangles_of_which_each_is_half_as_high_are_no_jump() -> None:
    rates = [1e-4 + 1e-2 * (1 - abs(1 - (at / 6) % 2)) / 2 ** (at // 12) for at in range(48)]
    assert state("lr_jump", run_of(learning_rate=rates)) is State.ABSENT


def test_a_stretch_of_zero_is_present_with_its_step() -> None:
    finding = seen("lr_zero", run_of(learning_rate=[1e-4] * 50 + [0.0] * 20))
    assert finding.state is State.PRESENT
    assert finding.steps == [51]


def test_a_rate_rounded_to_zero_while_the_loss_is_learnt_is_not_taken_for_zero() -> None:
    falling = np.geomspace(10, 7, 40)
    assert state("lr_zero", run_of(learning_rate=[0.0] * 40, loss=falling)) is State.UNKNOWN
    assert state("lr_zero", run_of(learning_rate=[1e-4] * 20 + [0.0] * 20, loss=falling)) is State.UNKNOWN
    assert state("lr_zero", run_of(learning_rate=[1e-4] * 20 + [0.0] * 20, loss=[2.0] * 40)) is State.PRESENT
    exact = np.concatenate([np.linspace(1.234567e-4, 1.1e-6, 20), np.zeros(20)])
    assert state("lr_zero", run_of(learning_rate=exact, loss=falling)) is State.PRESENT


def test_a_schedule_that_ends_at_zero_is_absent() -> None:
    assert state("lr_zero", run_of(learning_rate=np.linspace(1e-4, 0, 50))) is State.ABSENT


def test_without_a_rate_it_cannot_be_told_of_lr_zero() -> None:
    assert state("lr_zero", run_of(loss=[1.0] * 20)) is State.UNKNOWN


@pytest.mark.parametrize("floor", [1e-7, 1e-5])
def test_a_decay_that_ends_before_the_run_is_present_from_there_on(floor: float) -> None:
    rate = floor + (1e-4 - floor) * np.maximum(0.5 + 0.5 * np.cos(np.pi * np.minimum(AT / 0.6, 1)), 0)
    finding = seen("lr_schedule_short", run_of(learning_rate=rate))
    assert finding.state is State.PRESENT
    assert finding.steps[0] == pytest.approx(121, abs=5)


def test_a_rate_that_is_halved_on_and_on_is_quoted_with_its_value_at_each_step_named() -> None:
    rate = {10.0 * at: 1e-3 * 0.5 ** ((10 * at + 1) // 20) for at in range(40)}
    finding = seen("lr_schedule_short", run_of(learning_rate=rate))
    begins = finding.steps[0]
    assert f"down to {rate[begins]:.4g} at step {begins:.0f} and is 1.907e-09 at 390" in finding.summary


@pytest.mark.parametrize(
    "rate",
    [
        0.5 + 0.5 * np.cos(np.pi * AT),
        1 - AT,
        np.minimum(1, (1 - AT) / 0.1),
        np.full(200, 1.0),
        0.1 ** np.floor(AT * 3),
        np.minimum(AT / 0.3, 1),
        np.maximum(0.2, 0.6 + 0.4 * np.cos(np.pi * np.minimum(AT / 0.6, 1))),
    ],
    ids=["cosine", "linear", "stable then decay", "constant", "stages", "warmup then constant", "averaging at a fifth"],
)
def test_a_schedule_as_long_as_the_run_is_absent(rate: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    assert state("lr_schedule_short", run_of(learning_rate=1e-4 * rate)) is State.ABSENT


@pytest.mark.parametrize(
    ("rate", "step"),
    [
        (0.1 ** np.minimum(np.floor(AT * 24), 20), 26),
        (np.exp(-AT * 40), 35),
    ],
    ids=["tenths", "exponential"],
)
def test_a_rate_that_comes_to_nothing_in_the_first_quarter_is_present(
    rate: np.ndarray[tuple[int], np.dtype[np.float64]], step: float
) -> None:
    finding = seen("lr_schedule_short", run_of(learning_rate=1e-4 * rate))
    assert finding.state is State.PRESENT
    assert finding.steps[0] == pytest.approx(step, abs=3)
    assert "of the sum of all" in finding.summary


def test_a_few_records_cannot_tell() -> None:
    assert state("lr_schedule_short", run_of(learning_rate=[3.0, 2.0, 1.0, 1.0])) is State.UNKNOWN


def test_a_schedule_rounded_to_six_decimals_is_not_taken_for_one_that_ended() -> None:
    rate = 1e-5 * 0.5 * (1 + np.cos(np.pi * np.arange(100) / 99))
    assert state("lr_schedule_short", run_of(learning_rate=np.round(rate, 6))) is State.UNKNOWN
    assert state("lr_zero", run_of(learning_rate=np.round(rate, 6), loss=np.ones(100))) is State.UNKNOWN


def test_a_schedule_rounded_to_six_decimals_that_ends_half_way_is_still_seen() -> None:
    rate = 1e-5 * 0.5 * (1 + np.cos(np.pi * np.minimum(1, np.arange(100) / 50)))
    assert state("lr_zero", run_of(learning_rate=np.round(rate, 6))) is State.PRESENT


def test_a_rate_that_starts_over_in_each_epoch_is_not_the_cosine_that_is_configured() -> None:
    rate = np.tile([4e-3, 2.7e-3, 1.3e-3], 10)
    config: dict[str, Scalar] = {"lr_scheduler_type": "cosine", "max_steps": 30, "learning_rate": 4e-3}
    assert state("lr_hardly_decays", run_of(learning_rate=rate, loss=decay(30), config=config)) is State.PRESENT
    restarts: dict[str, Scalar] = {**config, "lr_scheduler_type": "cosine_with_restarts"}
    assert state("lr_hardly_decays", run_of(learning_rate=rate, loss=decay(30), config=restarts)) is not State.PRESENT


@pytest.mark.parametrize(
    "period", [{"lr_period_updates": 58.0}, {"T_0": 58}, {"sched": {"name": "cosine", "T_0": 58}}, {"num_cycles": 3}]
)
def test_a_cosine_that_is_configured_to_come_back_does_not_have_to_decay(period: dict[str, Scalar]) -> None:
    rate = 1e-3 * (0.5 + 0.5 * np.cos(np.pi * (np.arange(1, 201) % 58) / 58))
    assert present(rate, **period) == []
    without = run_of(learning_rate=rate, config={**PLAN, **dict.fromkeys(period, -1)})
    assert State.PRESENT in {state("lr_hardly_decays", without), state("lr_jump", without)}
    finding = seen("lr_jump", run_of(learning_rate=rate, config={**PLAN, **period}))
    assert finding.state is State.ABSENT
    assert finding.steps == [58], "where it comes back, and not where it begins to fall"


def test_a_rate_of_stages_that_goes_back_up_jumps() -> None:
    rate = np.concatenate([np.full(15, 4e-3), np.full(9, 4e-4), np.full(12, 4e-3)])
    assert state("lr_jump", run_of(learning_rate=rate, loss=decay(36))) is State.PRESENT


@pytest.mark.parametrize(("at", "expected"), [(120, State.PRESENT), (60, State.ABSENT)])
def test_a_schedule_that_starts_over_where_the_run_was_resumed_is_told(at: int, expected: State) -> None:
    rate = np.concatenate([1e-3 * COSINE[:120], 1e-3 * COSINE[:80]])
    run = replace(run_of(learning_rate=rate, loss=decay(200)), resumes=(float(at),))
    assert state("lr_jump", run) is State.PRESENT
    assert state("lr_jump_at_resume", run) is expected


def test_a_rate_that_does_not_jump_has_no_jump_at_a_resume() -> None:
    run = replace(run_of(learning_rate=1e-3 * COSINE, loss=decay(200)), resumes=(120.0,))
    assert state("lr_jump_at_resume", run) is State.UNKNOWN


@pytest.mark.parametrize(("warmup", "expected"), [(10, State.PRESENT), (190, State.UNKNOWN)])
def test_a_rate_that_still_rises_long_after_the_warmup_is_below_the_configured_peak(
    warmup: int, expected: State
) -> None:
    run = run_of(learning_rate=5e-5 * AT, loss=decay(200), config={"learning_rate": 1e-3, "warmup_steps": warmup})
    assert state("lr_below_configured", run) is expected
