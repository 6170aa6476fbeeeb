from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from mldebug_mcp import RunDiagnosis
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.models import State
from tests.runs import decay, diagnosed, noisy, run_of, seen, state


@pytest.mark.parametrize("down_to", [2.0**-8, 4.0])
def test_a_scale_that_collapses_is_present_from_its_first_fall(down_to: float) -> None:
    scale = np.concatenate([np.full(100, 2.0**15), np.maximum(2.0 ** (15.0 - np.arange(1, 101)), down_to)])
    finding = seen("loss_scale_falls", run_of(loss_scale=scale))
    assert finding.state is State.PRESENT
    assert finding.steps[0] == 101


def test_a_short_log_that_falls_below_one_is_present() -> None:
    assert state("loss_scale_falls", run_of(loss_scale=2.0 ** np.arange(10, -4, -1.0))) is State.PRESENT


@pytest.mark.parametrize(
    "scale",
    [
        np.concatenate([2.0 ** np.arange(32, 14, -1.0), np.full(100, 2.0**15)]),
        2.0 ** (15 + np.arange(400) // 50 % 3),
        np.full(50, 65536.0),
    ],
    ids=["probing at the start", "up and down", "constant"],
)
def test_a_scaler_that_finds_its_limit_is_absent(scale: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    assert state("loss_scale_falls", run_of(loss_scale=scale)) is State.ABSENT


@pytest.mark.parametrize(("last", "answer"), [("1", State.PRESENT), ("32768", State.UNKNOWN)])
def test_what_the_scaler_says_counts_where_the_scale_is_not_logged(last: str, answer: State) -> None:
    builder = RunBuilder()
    builder.record({"step": 1, "loss": 5.0})
    builder.message(1, "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 262144, reducing to 131072.0")
    builder.message(2, f"OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to {last}")
    assert state("loss_scale_falls", builder.build("log")) is answer


def test_without_a_scale_it_cannot_be_told() -> None:
    assert state("loss_scale_falls", run_of(loss=[1.0] * 9)) is State.UNKNOWN


def test_in_an_excerpt_a_scale_that_sinks_from_a_half_to_its_floor_is_present() -> None:
    assert state("loss_scale_falls", run_of(loss_scale=[0.5 / 2**halved for halved in range(13)])) is State.PRESENT


def test_a_scale_that_is_small_because_losses_are_sums_is_absent() -> None:
    assert state("loss_scale_falls", run_of(loss_scale=[0.0625, 0.0625, 0.03125, 0.0625, 0.03125])) is State.ABSENT


def test_overflows_again_and_again_at_the_smallest_scale_are_present() -> None:
    finding = seen("loss_scale_falls", run_of(loss_scale=[1.0] * 5, overflow=[1.0] * 5))
    assert finding.state is State.PRESENT
    assert "skipped for overflow 5 times" in finding.summary


def test_a_scale_of_one_without_overflows_is_absent() -> None:
    assert state("loss_scale_falls", run_of(loss_scale=[1.0] * 5, loss=[3.0] * 5)) is State.ABSENT


def test_a_scale_that_still_falls_at_the_end_of_a_few_records_cannot_be_told() -> None:
    assert state("loss_scale_falls", run_of(loss_scale=[64.0, 32.0, 16.0, 8.0, 4.0])) is State.UNKNOWN
    assert state("loss_scale_falls", run_of(loss_scale=[64.0, 32.0, 16.0, 16.0, 16.0, 32.0])) is State.ABSENT


@pytest.mark.parametrize(("scale", "answer"), [(0.125, State.PRESENT), (1024.0, State.ABSENT)])
def test_a_scale_that_is_told_once_as_a_step_is_skipped_is_present_below_one(scale: float, answer: State) -> None:
    run = run_of(loss=[2.0] * 30, loss_scale={20: scale}, overflow={20: 1.0})
    assert state("loss_scale_falls", run) is answer


def test_a_small_scale_at_which_no_step_is_skipped_is_absent() -> None:
    assert state("loss_scale_falls", run_of(loss=[2.0] * 30, loss_scale=[0.125] * 30)) is State.ABSENT


NAME = "overflows_in_fp16"
LOSS = noisy(np.full(200, 2.3), 0.02)
LOST = np.full(200, np.inf)


def test_gradients_that_are_never_finite_beside_a_loss_at_rest_are_present() -> None:
    finding = seen(NAME, run_of(loss=LOSS, grad_norm=LOST, config={"fp16": True}))
    assert finding.state is State.PRESENT
    assert finding.values["share"] == 1


def test_a_loss_scale_that_moves_by_halves_tells_the_precision() -> None:
    scale = 2.0 ** np.minimum(16 + np.arange(200) // 50, 18)
    assert state(NAME, run_of(loss=LOSS, grad_norm=LOST, loss_scale=scale)) is State.PRESENT


@pytest.mark.parametrize("config", [{"bf16": True}, {"fp16": False, "bf16": False}])
def test_in_another_precision_it_is_absent(config: dict[str, bool]) -> None:
    loss = decay(50)
    loss[30:] = np.nan
    assert state(NAME, run_of(loss=loss, config=config)) is State.ABSENT


def test_where_nothing_tells_the_precision_it_is_unknown() -> None:
    assert state(NAME, run_of(loss=LOSS, grad_norm=LOST)) is State.UNKNOWN
    assert state(NAME, run_of(loss=LOSS, grad_norm=LOST, loss_scale=np.ones(200))) is State.UNKNOWN


def _falling(loss: Callable[[int], float]) -> RunDiagnosis:
    """Diagnose a run whose gradients are lost from step 31 on, where its loss scale begins to fall."""
    return diagnosed(
        {
            "loss": loss,
            "grad_norm": lambda step: 0.6 if step <= 30 else math.nan,
            "loss_scale": lambda step: 2.0 ** (16 - max(0, step - 30)),
        },
        steps=60,
        fp16=True,
    )


def test_a_loss_that_is_lost_before_it_is_scaled_is_no_sure_overflow() -> None:
    diagnosis = _falling(lambda step: 2.5 - step / 100 if step <= 30 else math.nan)
    assert "scale_falls_with_loss" in {one.symptom for one in diagnosis.findings if one.state is State.PRESENT}
    causes = {one.cause: one.probability for one in diagnosis.hypotheses}
    assert causes["invalid_math"] > 0.1
    assert causes["fp16_overflow"] < 0.9


@pytest.mark.parametrize("loss", [lambda step: 2.5 - step / 100, lambda _: math.nan], ids=["finite", "never finite"])
def test_gradients_that_overflow_under_a_finite_loss_or_from_the_first_step_on_are_an_overflow(
    loss: Callable[[int], float],
) -> None:
    diagnosis = _falling(loss)
    assert "loss_scale_falls" in {one.symptom for one in diagnosis.findings if one.state is State.PRESENT}
    assert diagnosis.hypotheses[0].cause == "fp16_overflow"


def test_a_scaler_that_looks_for_its_scale_loses_steps_that_do_not_count() -> None:
    norm = np.ones(400)
    norm[:16] = np.inf
    norm[[150, 250, 350]] = np.inf
    assert state(NAME, run_of(loss=decay(400), grad_norm=norm, config={"fp16": True})) is State.UNKNOWN


def test_a_healthy_run_in_half_precision_is_not_judged() -> None:
    assert state(NAME, run_of(loss=decay(400), grad_norm=np.ones(400), config={"fp16": True})) is State.UNKNOWN


def test_steps_skipped_again_and_again_are_present() -> None:
    skipped = np.zeros(200)
    skipped[60::5] = 1
    finding = seen("steps_skipped", run_of(skipped_iterations=skipped))
    assert finding.state is State.PRESENT
    assert finding.steps == [61]


def test_several_skipped_steps_on_end_are_present() -> None:
    skipped = np.zeros(500)
    skipped[300:305] = 1
    assert state("steps_skipped", run_of(skipped_iterations=skipped)) is State.PRESENT


def test_a_counter_over_the_whole_run_is_read_as_one() -> None:
    assert state("steps_skipped", run_of(skipped_iterations=np.r_[np.zeros(99), np.full(200, 1.0)])) is State.ABSENT
    assert state("steps_skipped", run_of(skipped_iterations=np.arange(300.0) // 4)) is State.PRESENT


@pytest.mark.parametrize("at", [slice(0, 8), slice(100, 101), slice(50, None, 100)], ids=["start", "one", "far apart"])
def test_a_scaler_that_finds_its_limit_is_absent_of_steps_skipped(at: slice) -> None:
    skipped = np.zeros(400)
    skipped[at] = 1
    assert state("steps_skipped", run_of(skipped_iterations=skipped)) is State.ABSENT


def test_each_halving_of_the_scale_counts_where_there_is_no_counter() -> None:
    assert state("steps_skipped", run_of(loss_scale=np.where(np.arange(60) % 6, 8.0, 4.0))) is State.PRESENT


def test_without_a_counter_or_a_scale_it_cannot_be_told() -> None:
    assert state("steps_skipped", run_of(loss=[1.0] * 9)) is State.UNKNOWN


def test_where_only_skipped_steps_are_logged_it_cannot_be_told() -> None:
    run = run_of(overflow=[1.0] * 6, loss_scale=[64.0, 32.0, 16.0, 8.0, 4.0, 2.0])
    assert state("steps_skipped", run) is State.UNKNOWN


def test_the_sentence_tells_after_how_many_records_it_looked() -> None:
    finding = seen("steps_skipped", run_of(skipped_iterations=[0, 0, 0, 0, 1, 0, 1, 0, 1, 0]))
    assert "after the first 5" in finding.summary


def test_messages_of_skipped_steps_count_beside_the_records_of_the_others() -> None:
    run = run_of(loss=dict.fromkeys(range(10, 101, 10), 3.0), overflow=dict.fromkeys(range(71, 77), 1.0))
    finding = seen("steps_skipped", run)
    assert finding.state is State.PRESENT
    assert finding.summary.startswith("skipped steps in 6 of 16 records, the first at step 71")


def test_the_whole_descent_from_the_start_is_no_overflow() -> None:
    run = run_of(loss=dict.fromkeys(range(1, 14), 3.0), overflow=dict.fromkeys(range(1, 12), 1.0))
    assert state("steps_skipped", run) is State.ABSENT


def test_a_scale_that_only_comes_down_from_where_it_began_is_absent() -> None:
    assert state("steps_skipped", run_of(loss_scale=[2.0**power for power in range(32, 25, -1)])) is State.ABSENT


def test_a_scaler_that_tries_a_doubled_scale_again_and_again_is_absent_however_seldom_records_come() -> None:
    probes = {10.0 * record: float((record + 9) // 10) for record in range(1, 400)}
    assert state("steps_skipped", run_of(skipped_iterations=probes)) is State.ABSENT
