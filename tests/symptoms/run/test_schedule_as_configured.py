from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.logs.run import Floats, Scalar
from mldebug_mcp.models import State
from tests.runs import decay, run_of, run_of_records, seen, state

AT = np.arange(200) / 200
COSINE = 0.5 + 0.5 * np.cos(np.pi * AT)
WARM = np.minimum((np.arange(200) + 1) / 20, 1)
PLAN: dict[str, Scalar] = {"learning_rate": 1e-3, "max_steps": 200, "lr_scheduler_type": "cosine"}
OUTCOMES = ("lr_above_configured", "lr_below_configured", "lr_hardly_decays", "lr_decays_early", "lr_rises_again")


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


def test_a_cosine_that_is_stepped_on_beyond_its_length_is_present_where_it_turns() -> None:
    rate = 1e-3 * (0.5 + 0.5 * np.cos(np.pi * AT * 2.2))
    assert present(rate) == ["lr_rises_again"]
    assert seen("lr_rises_again", run_of(learning_rate=rate, config=PLAN)).steps[0] == pytest.approx(92, abs=2)


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
