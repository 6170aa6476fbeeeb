"""What settings expect: where a schedule ends, where a task gets harder, and what learns at all."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests import runs

from mldebug_mcp import RunDiagnosis, diagnose_run

NOISE = np.random.default_rng(11).normal(0, 1, 1000)
diagnosed = partial(runs.diagnosed, steps=200)


def facts(answer: RunDiagnosis) -> dict[str, str]:
    return {fact.fact: fact.text for fact in answer.sheet.facts}


def by_epoch(rate: float, end: float, **settings: Any) -> RunDiagnosis:
    """Diagnose 25 epochs of a linear schedule from a rate, where a loss comes down from 1.65 to some value."""
    records = [
        {
            "epoch": float(epoch), "lr": max(rate * (1 - epoch / 25), 1e-4), "train_loss": (1.65 - slope) + noise,
            "val_loss": (1.6 - slope) + noise,
        }
        for epoch in range(1, 26)
        for slope in [(1.65 - end) * (epoch - 1) / 24]
        for noise in [0.003 * float(NOISE[epoch])]
    ]  # fmt: skip
    return diagnose_run(records, settings={"epochs": 25, "optimizer": "SGD", "lr0": 0.01} | settings)


@pytest.mark.parametrize("floor", [
    {"lrf": 0.01}, {"min_lr": 1e-4}, {"scheduler/eta_min": 1e-4}, {"milestones": [12, 20], "gamma": 0.1},
])  # fmt: skip
def test_a_rate_that_is_at_the_end_of_its_schedule_at_once_has_a_schedule_that_steps_too_often(
    floor: dict[str, Any],
) -> None:
    answer = by_epoch(0.0, 1.1, **floor)
    assert "is 0.0001 in all 25 records from epoch 1 on" in facts(answer)["rate_at_floor_at_once"]
    assert answer.hypotheses[0].cause == "lr_schedule_bug"


@pytest.mark.parametrize(("rate", "settings"), [
    (0.01, {"lrf": 0.01}), (0.0, {"lrf": 0.01, "lr_scheduler": "constant"}), (0.0, {"lrf": 0.9}), (0.0, {}),
    (0.0, {"lrf": 0.02}), (0.0, {"milestones": [12], "gamma": 0.1}), (0.0, {"gamma": 0.1}),
])  # fmt: skip
def test_a_rate_that_comes_down_or_is_at_no_end_is_not(rate: float, settings: dict[str, Any]) -> None:
    assert "rate_at_floor_at_once" not in facts(by_epoch(rate, 0.3, **settings))


@pytest.mark.parametrize(("end", "leads"), [(0.6935, True), (0.3, False)])
def test_a_rate_of_zero_in_all_records_is_a_fault_of_the_schedule_unless_the_loss_is_learnt(
    end: float, leads: bool
) -> None:
    columns = {
        "loss": lambda step: 0.6935 - (0.6935 - end) * step / 200 + 1e-3 * float(NOISE[step]),
        "lr": lambda _: 0.0,
    }
    answer = diagnosed(columns)
    assert ("rate_zero_throughout" in facts(answer)) is leads
    assert (answer.hypotheses[0].cause == "lr_schedule_bug") is leads
    assert answer.hypotheses[0].cause != "lr_too_low"


@pytest.mark.parametrize("settings", [
    {"max_iters": 200, "SOLVER/STEPS": [140, 180]}, {"epochs": 20, "lr_scheduler/milestones": [14, 18]},
    {"max_iters": 200, "lr_config": {"policy": "step", "step": [140, 180]}},
])  # fmt: skip
@pytest.mark.parametrize(("first", "is_early"), [(20, True), (140, False)])
def test_a_rate_that_falls_long_before_its_milestones_has_a_schedule_that_steps_too_often(
    settings: dict[str, Any], first: int, is_early: bool
) -> None:
    second = first + first * 2 // 7
    columns = {
        "loss": lambda step: 0.8 + 1.2 * 0.97 ** min(step, first) + 1e-3 * float(NOISE[step]),
        "lr": lambda step: 0.02 if step < first else 0.002 if step < second else 0.0002,
        "epoch": lambda step: step / 10,
    }
    answer = diagnosed(columns, **settings)
    text = facts(answer).get("rate_falls_before_milestones", "")
    assert ("about 7 times later" in text) is is_early
    assert (answer.hypotheses[0].cause == "lr_schedule_bug") is is_early


def of_stages(step: int, jump: float, stays: float = 0.0) -> float:
    """Return a loss that is learnt twice: anew from step 101 on, where it jumps."""
    first = 0.03 + 2 * math.exp(-step / 20)
    second = 0.0 if step <= 100 else stays + jump * math.exp(-(step - 101) / 20)
    return (first + second) * (1 + 0.02 * float(NOISE[step]))


def second_half(step: int) -> float:
    return 1.0 + (step > 100)


@pytest.mark.parametrize("name", ["stage", "n_digits", "horizon"])
def test_a_loss_that_jumps_where_a_harder_stage_begins_and_is_learnt_again_is_healthy(name: str) -> None:
    answer = diagnosed({"train loss": partial(of_stages, jump=3.0), name: second_half, "lr": lambda _: 2e-3})
    assert f"at step 101, where {name} steps up" in facts(answer)["stages_explain_jumps"]
    assert answer.hypotheses[0].cause == "healthy"


@pytest.mark.parametrize(("settings", "stated"), [({"snr_curriculum_db": "20,10"}, True), ({}, False)])
def test_a_column_that_steps_down_is_a_stage_where_a_setting_of_stages_names_it(
    settings: dict[str, Any], stated: bool
) -> None:
    columns: dict[str, Any] = {
        "loss": partial(of_stages, jump=3.0), "train/snr_db": lambda step: 20.0 - 10.0 * (step > 100),
    }  # fmt: skip
    answer = diagnosed(columns, **settings)
    assert ("train/snr_db steps down" in facts(answer).get("stages_explain_jumps", "")) is stated


@pytest.mark.parametrize("key", ["curriculum/stages/100", "curriculum/stages/0/until"])
def test_stages_that_only_the_settings_give_explain_a_jump_as_well(key: str) -> None:
    settings: dict[str, Any] = {key: 100}
    answer = diagnosed({"loss": partial(of_stages, jump=3.0)}, **settings)
    assert "stages_explain_jumps" in facts(answer)
    assert answer.hypotheses[0].cause == "healthy"


@pytest.mark.parametrize(("name", "stays", "begins"), [
    ("stage", 3.0, 100), ("shard", 0.0, 100), ("stage", 0.0, 150), ("stage", 0.0, 0),
])  # fmt: skip
def test_a_jump_that_stays_or_comes_at_another_step_is_explained_by_no_stage(
    name: str, stays: float, begins: int
) -> None:
    columns: dict[str, Any] = {
        "loss": partial(of_stages, jump=3.0, stays=stays),
        name: lambda step: 1.0 + (step > begins),
    }
    assert "stages_explain_jumps" not in facts(diagnosed(columns))


def of_steps(step: int) -> float:
    """Return what is 32 at first and twice as much after 50, 90 and 150 steps."""
    return 32.0 * (1 + (step > 50)) * (1 + (step > 90)) * (1 + (step > 150))


def against_the_batch(step: int, power: float, late: float = 0.0) -> float:
    """Return a loss that falls, grows with a power of what `of_steps` gives, and jumps once more where it is late."""
    level: float = (0.2 + 2 * math.exp(-step / 10)) * math.pow(of_steps(step) / 32, power)
    return level * (1 - 0.001 * (step % 50)) * (1 + 0.005 * float(NOISE[step])) + late * (step > 120)


@pytest.mark.parametrize("name", ["n", "negatives", "rows per side", "masked"])
def test_a_loss_that_jumps_at_each_step_of_a_column_of_any_name_has_another_scale_there(name: str) -> None:
    answer = diagnosed({"nce": partial(against_the_batch, power=0.7), name: of_steps})
    assert "at steps 51, 91, 151, just where" in facts(answer)["stages_explain_jumps"]
    assert answer.hypotheses[0].cause == "healthy"


@pytest.mark.parametrize(("power", "late", "column"), [
    (0.7, 0.6, of_steps), (1.05, 0.0, of_steps), (0.7, 0.0, lambda step: 1.0 + (step > 50) + (step > 110)),
    (0.7, 0.0, lambda step: 1.0 + (step - 1) // 50),
], ids=["a jump elsewhere", "a sum", "steps elsewhere", "a count"])  # fmt: skip
def test_jumps_that_a_column_gives_no_reason_for_stay(power: float, late: float, column: Any) -> None:
    columns = {"nce": partial(against_the_batch, power=power, late=late), "n": column}
    assert "stages_explain_jumps" not in facts(diagnosed(columns))


def idle(step: int) -> float:
    return 1.61 + 0.004 * float(NOISE[step])


STILL = {"Train": lambda _: 0.2333, "Val": lambda _: 0.255, "Test": lambda _: 0.2275}


@pytest.mark.parametrize("norm", [{"grad_norm": lambda step: 0.17 + 0.005 * float(NOISE[-step])}, {}])
def test_scores_that_never_move_though_steps_are_long_are_of_weights_that_are_not_trained(norm: dict[str, Any]) -> None:
    answer = diagnosed(STILL | {"loss": idle} | norm, lr=0.01)
    assert "Train 0.2333 and Val 0.255 and Test 0.2275 are the same number" in facts(answer)["scores_stand_still"]
    assert answer.hypotheses[0].cause == "params_not_training"


@pytest.mark.parametrize(("columns", "rate"), [
    ({}, 1e-6),
    ({"Val": lambda step: 0.255 + 0.001 * (step > 50)}, 0.01),
    ({"loss": lambda step: 0.2 + 1.4 * math.exp(-step / 40)}, 0.01),
    ({"Train": lambda _: 1.0, "Val": lambda _: 1.0}, 0.01),
])  # fmt: skip
def test_scores_that_cannot_move_or_do_are_not(columns: dict[str, Any], rate: float) -> None:
    for norm in ({"grad_norm": lambda _: 0.17}, {}):
        answer = diagnosed(STILL | {"loss": idle} | norm | columns, lr=rate)
        assert "scores_stand_still" not in facts(answer)


@pytest.mark.parametrize(("columns", "stated"), [
    ({}, True),
    ({"Test": lambda step: 0.2 + step / 500}, False),  # a ranking may be hard
    ({"Val": lambda step: 0.255 if step > 20 else 0.8}, False),  # an error
    ({"Val loss": lambda step: 0.5 + 1.1 * math.exp(-step / 20)}, False),
])  # fmt: skip
def test_scores_of_sets_that_stand_still_contradict_a_loss_far_below_what_they_cost(
    columns: dict[str, Any], stated: bool
) -> None:
    losses = {name: lambda step: 0.1 + 1.5 * math.exp(-step / 20) for name in ("Loss", "Val loss")}
    answer = diagnosed(STILL | losses | columns, lr=0.01)
    assert ("loss_contradicts_accuracy" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "metric_bug") is stated


@pytest.mark.parametrize(("recall", "start", "stated"), [
    (0.014, 5.0, True), (0.6, 5.0, False), (0.014, 0.69, False),
])  # fmt: skip
def test_hits_by_chance_next_to_a_loss_that_has_learnt_to_rank_are_measured_wrongly(
    recall: float, start: float, stated: bool
) -> None:
    def learnt(step: int) -> float:
        return 0.05 + start * math.exp(-step / 30)

    evaluated = {
        "val_loss": lambda step: 1.1 + learnt(step) / 10, "val_recall@1": lambda _: recall / 8,
        "val_recall@10": lambda step: recall * (1 + 0.05 * float(NOISE[step])),
    }  # fmt: skip
    answer = diagnosed({"loss": learnt}, evaluated, batch_size=64, eval_corpus=500, task="retrieval")
    assert ("ranking_by_chance" in facts(answer)) is stated
    assert not stated or answer.hypotheses[0].cause == "metric_bug"


def test_a_forecast_that_goes_on_from_its_own_answers_is_no_language_model() -> None:
    columns = {"loss": lambda step: 0.02 + 0.4 * math.exp(-step / 20) + 0.001 * float(NOISE[step])}
    answer = diagnosed(columns, task="autoregressive rollout forecast")
    assert answer.run.kind == "supervised"
    assert answer.hypotheses[0].cause == "healthy"
