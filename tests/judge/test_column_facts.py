"""How columns stand to one another, to bounds and to settings is stated with what is expected, of any name."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mldebug_mcp import RunDiagnosis, diagnose_run
from mldebug_mcp.models import State
from mldebug_mcp.models.diagnosis import DerivedFact

Value = Callable[[int], float]
RNG = np.random.default_rng(3)
NOISE: list[float] = RNG.normal(0, 1, 1000).tolist()


def falling(high: float = 2.3, low: float = 0.4, noise: float = 0.01) -> Value:
    return lambda step: low + (high - low) * math.exp(-step / 40) + noise * float(NOISE[step % 1000])


def run_of(
    columns: dict[str, Value], evaluated: dict[str, Value] | None = None, steps: int = 160, **settings: Any
) -> RunDiagnosis:
    records = []
    for step in range(2, steps + 1, 2):
        record = {"step": float(step)} | {name: value(step) for name, value in columns.items()}
        if step % 20 == 0:
            record |= {name: value(step) for name, value in (evaluated or {}).items()}
        records.append(record)
    return diagnose_run(records, settings=settings or None)


def fact(answer: RunDiagnosis, name: str) -> DerivedFact:
    return next(one for one in answer.sheet.facts if one.fact == name)


def facts(answer: RunDiagnosis) -> list[str]:
    return [one.fact for one in answer.sheet.facts]


def test_a_healthy_run_has_no_such_facts() -> None:
    loss = falling()
    answer = run_of(
        {"loss": loss, "acc": lambda step: 0.9 - loss(step) / 4, "grad_norm": lambda step: 1 + 0.05 * NOISE[step]},
        {"eval_loss": lambda step: loss(step) + 0.05, "eval_acc": lambda step: 0.88 - loss(step) / 4},
        learning_rate=1e-3,
    )
    assert facts(answer) == []


@pytest.mark.parametrize(("name", "times"), [("train/loss", 4), ("tr_loss", 8)])
def test_a_training_loss_that_is_a_multiple_of_the_evaluation_loss_is_stated_beside_the_setting(
    name: str, times: int
) -> None:
    loss = falling()
    answer = run_of(
        {name: lambda step: times * loss(step)},
        {"val_loss": loss},
        gradient_accumulation_steps=times,
        learning_rate=1e-3,
    )
    found = fact(answer, "loss_multiple")
    assert found.values["factor"] == pytest.approx(times, rel=0.1)
    assert f"gradient_accumulation_steps is {times}" in found.text
    assert "About 1 is expected" in found.text
    assert answer.hypotheses[0].cause == "grad_accum_scaling"


def test_an_evaluation_loss_that_stays_above_is_a_gap_and_no_multiple() -> None:
    loss = falling(2.3, 0.5)
    answer = run_of({"loss": loss}, {"eval_loss": lambda step: 4 * loss(step)}, gradient_accumulation_steps=4)
    assert not {"loss_multiple", "loss_on_another_scale"} & {*facts(answer)}


@pytest.mark.parametrize(("times", "start", "settings", "stated"), [
    (4, math.log(103), {"vocab_size": 103, "task": "pretraining", "gradient_accumulation_steps": 4}, True),
    (8, math.log(10), {"num_classes": 10, "grad_accum": 8}, True),
    (3, math.log(32000), {"vocab_size": 32000, "task": "pretraining", "accum_steps": 3}, True),
    (4, 2.5, {"vocab_size": 103, "task": "pretraining", "gradient_accumulation_steps": 4}, False),
    (4, math.log(103), {"vocab_size": 103, "task": "pretraining", "gradient_accumulation_steps": 1}, False),
])  # fmt: skip
def test_a_training_loss_that_is_a_part_of_evaluation_and_begins_at_that_part_of_a_guess_is_divided_twice(
    times: int, start: float, settings: dict[str, Any], stated: bool
) -> None:
    loss = falling(start, 0.5 * start)
    answer = run_of({"loss": lambda step: loss(step - 2) / times}, {"eval_loss": loss}, **settings)
    assert ("loss_multiple" in facts(answer)) is stated
    assert answer.hypotheses[0].cause == "grad_accum_scaling" or not stated


def test_a_part_of_the_loss_that_stays_while_the_others_fall_is_named_with_the_sum() -> None:
    second = falling(6.0, 0.5)

    def first(step: int) -> float:
        return 2.303 + 0.002 * NOISE[step]

    answer = run_of({"loss": lambda step: first(step) + second(step), "loss_cls": first, "loss_reg": second})
    found = fact(answer, "part_stays")
    assert "loss = 1 x loss_cls + 1 x loss_reg" in found.text
    assert "loss_cls stays at 2.30" in found.text


def test_a_part_that_is_nearly_all_of_the_loss_is_stated() -> None:
    small, large = falling(0.004, 0.002, 1e-5), falling(9.0, 4.0)
    answer = run_of({"loss": lambda step: small(step) + large(step), "loss_mask": small, "loss_box": large})
    assert "loss_box is >99% of it" in fact(answer, "part_rules").text


@pytest.mark.parametrize(("bound", "words", "settings"), [
    (math.log(2), "ln 2", {}), (math.log(37), "ln 37", {"num_classes": 37}),
])  # fmt: skip
def test_a_loss_that_rests_at_that_of_a_guess_is_stated_with_how_near_and_since_when(
    bound: float, words: str, settings: dict[str, Any]
) -> None:
    def loss(step: int) -> float:
        return bound + max(0.0, 1.0 - step / 40) + 2e-4 * float(NOISE[step])

    answer = run_of({"loss": loss}, {"eval_loss": lambda step: loss(step) + 1e-4}, **settings)
    found = fact(answer, "rests_at_bound")
    assert f"= {words} to within" in found.text
    assert 36 <= found.steps[0] <= 44


def test_a_squared_error_at_ln_2_is_there_by_chance() -> None:
    answer = run_of(
        {"loss": lambda step: 0.4 + 0.1 / step}, {"val_loss": lambda _: 0.6932, "val_mse": lambda _: 0.6932}
    )
    assert not [found for found in answer.sheet.facts if found.fact == "rests_at_bound"]


def test_a_loss_at_ln_2_is_compared_with_the_share_of_labels_that_are_one() -> None:
    answer = run_of(
        {"loss": lambda step: 0.6932 + 1e-4 * NOISE[step]},
        {"val_loss": lambda _: 0.6932, "val_label_mean": lambda _: 0.05, "val_auc": lambda step: 0.6 + 0.0001 * step},
    )
    said = "with 5% of the labels 1, the constant guess alone reaches 0.1985"
    assert said in fact(answer, "worse_than_constant").text


def test_a_score_of_one_from_the_first_evaluation_is_stated() -> None:
    answer = run_of({"loss": falling()}, {"eval_loss": falling(), "eval_auc": lambda _: 1.0})
    assert "exactly 1 at all 8 evaluations" in fact(answer, "at_ceiling").text


def test_scores_of_one_evaluation_that_cannot_both_be_right_are_stated_together() -> None:
    answer = run_of(
        {"loss": falling()},
        {"val_pixel_acc": lambda step: 1 - 0.3 * math.exp(-step / 40), "val_miou": lambda step: 0.003 - step * 1e-5},
    )
    assert "are expected to rise together" in fact(answer, "scores_contradict").text


def test_a_score_above_one_next_to_scores_that_are_shares_is_stated() -> None:
    answer = run_of(
        {"loss": falling()},
        {
            "val_pixel_acc": lambda step: 1 - 0.3 * math.exp(-step / 40),
            "val_dice": lambda step: 1.7 - math.exp(-step / 40),
        },
    )
    assert "It is at most 1" in fact(answer, "beyond_one").text
    assert answer.hypotheses[0].cause == "metric_bug"
    in_percent = run_of({"loss": falling()}, {"val_dice": lambda step: 80 - 79 * math.exp(-step / 40)})
    assert "beyond_one" not in facts(in_percent)


@pytest.mark.parametrize(("name", "top", "train_top", "stated"), [
    ("acc", 1.08, 0.97, True), ("f1", 1.3, 0.9, True), ("dice", 0.95, 1.6, True),
    ("acc", 25.0, 30.0, False), ("acc", 0.96, 0.97, False),
])  # fmt: skip
def test_a_share_above_one_next_to_the_same_of_the_other_phase_is_stated(
    name: str, top: float, train_top: float, stated: bool
) -> None:
    def rising(end: float) -> Value:
        return lambda step: end - 0.4 * math.exp(-step / 12)

    answer = run_of(
        {"loss": falling(), f"train_{name}": rising(train_top)},
        {"val_loss": falling(), f"val_{name}": rising(top)},
        num_classes=8,
    )
    assert ("beyond_one" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "metric_bug") is stated


def test_an_f1_of_nothing_does_not_contradict_an_accuracy_that_the_commonest_class_gives() -> None:
    answer = run_of(
        {"loss": falling()}, {"val_acc": lambda _: 0.984, "val_f1": lambda step: 0.01 if step < 40 else 0.0}
    )
    assert "answers of the other alone give both" in fact(answer, "majority_alone").text
    assert "scores_contradict" not in facts(answer)


@pytest.mark.parametrize(("names", "accuracy", "low", "leads"), [
    (("voxel accuracy", "Pseudo dice"), lambda _: 0.9908, 0.1, "class_imbalance"),
    (("val_acc", "val_f1"), lambda _: 0.984, 0.1, "class_imbalance"),
    (("voxel accuracy", "Pseudo dice"), lambda step: 0.992 - 0.02 * math.exp(-step / 40), 0.1, "metric_bug"),
    (("val_acc", "val_f1"), lambda _: 0.984, 0.99, ""),
    (("train_acc", "val_f1"), lambda _: 0.984, 0.1, ""),
])  # fmt: skip
def test_an_accuracy_that_never_moves_next_to_an_f1_of_0_is_that_of_one_answer_while_the_loss_falls(
    names: tuple[str, str], accuracy: Value, low: float, leads: str
) -> None:
    loss = lambda step: low + (1 - low) * math.exp(-step / 40) + 0.002 * NOISE[step]  # noqa: E731
    scores: dict[str, Value] = {names[0]: accuracy, names[1]: lambda _: 0.0}
    answer = run_of({"loss": loss}, {"val_loss": loss} | scores)
    assert ("one_answer_of_majority" in facts(answer)) is (leads == "class_imbalance")
    if leads:
        assert answer.hypotheses[0].cause == leads


def test_an_evaluation_that_is_right_where_training_is_not_is_stated() -> None:
    answer = run_of(
        {"loss": falling(), "accuracy": lambda step: min(0.6, step / 100)},
        {"eval_loss": falling(), "eval_accuracy": lambda step: min(1.0, 0.5 + step / 80)},
    )
    assert "at least as well where both are asked" in fact(answer, "training_behind").text


@pytest.mark.parametrize(
    ("columns", "stated"),
    [
        ({}, True),
        ({"learning_rate": lambda _: 1e-8}, False),
        ({"param_norm": lambda step: 12.568 + step // 60 / 1000}, False),
        ({"loss": falling()}, False),
    ],
    ids=["still", "a rate too low to show", "moving", "frozen weights of a model that learns"],
)
def test_weights_whose_norm_no_update_moves_are_stated(columns: dict[str, Any], stated: bool) -> None:
    still = {"loss": lambda step: 1.24 + 0.01 * NOISE[step], "param_norm": lambda _: 12.568}
    more = {"grad_norm": lambda step: 0.1 + 0.005 * NOISE[step], "learning_rate": lambda _: 1e-2}
    answer = run_of({**still, **more, **columns})
    assert ("weights_stand_still" in facts(answer)) is stated
    assert not stated or answer.hypotheses[0].cause == "params_not_training"


@pytest.mark.parametrize(
    ("evaluated", "stated"),
    [
        (lambda step: 0.01 + 0.0005 * NOISE[step], True),
        (lambda step: 0.05 * falling(noise=0.0)(step), False),
        (lambda step: 0.5 + 0.01 * NOISE[step], False),
    ],
    ids=["good at once", "on another scale", "not so far below"],
)
def test_an_evaluation_that_is_good_before_anything_is_learnt_is_stated(evaluated: Value, stated: bool) -> None:
    answer = run_of({"loss": falling()}, {"eval_loss": evaluated})
    assert ("evaluation_good_at_once" in facts(answer)) is stated
    assert not stated or answer.hypotheses[0].cause in ("train_eval_leakage", "metric_bug")


@pytest.mark.parametrize(("part", "stated"), [("aux_loss", False), ("value_loss_part", True)])
def test_a_loss_that_keeps_experts_balanced_may_stay(part: str, stated: bool) -> None:
    rest = falling()
    answer = run_of({
        "loss": lambda step: rest(step) + 0.01, "ce_loss": rest, part: lambda _: 0.01,
    })  # fmt: skip
    assert ("part_stays" in facts(answer)) is stated


def test_a_score_of_neighbours_is_not_set_against_that_of_a_harder_training() -> None:
    answer = run_of(
        {"loss": falling(), "train/top1": lambda step: min(0.6, step / 100)},
        {"eval_loss": falling(), "eval/knn_acc": lambda step: min(1.0, 0.5 + step / 80)},
    )
    assert "training_behind" not in facts(answer)


def test_completions_at_their_limit_are_stated_with_the_limit() -> None:
    answer = run_of(
        {
            "loss": lambda step: 0.001 * NOISE[step], "reward": lambda step: 0.1 + 0.01 * NOISE[step],
            "kl": lambda _: 0.01, "reward_std": lambda _: 0.2,
            "completions/clipped_ratio": lambda step: 0.6 + 0.05 * NOISE[step],
            "completions/mean_length": lambda step: 60 + 0.5 * NOISE[step],
        },
        max_completion_length=64, num_generations=8,
    )  # fmt: skip
    assert "of at most 64" in fact(answer, "cut_at_limit").text


def test_a_policy_none_of_whose_completions_ends_is_less_likely_healthy_than_one_whose_completions_end() -> None:
    def policy(cut: float) -> RunDiagnosis:
        return run_of(
            {
                "loss": lambda step: 0.001 * NOISE[step], "reward": lambda step: 0.3 + 0.003 * step + 0.1 * NOISE[step],
                "kl": lambda _: 0.01, "reward_std": lambda _: 0.2, "completions/clipped_ratio": lambda _: cut,
                "completions/mean_length": lambda step: 100 + 0.5 * NOISE[step],
            },
            num_generations=8,
        )  # fmt: skip

    ended, cut = policy(0.02), policy(1.0)
    assert ended.hypotheses[0].cause == "healthy"
    assert "none_ends" not in facts(ended)
    assert "none_ends" in facts(cut)
    assert cut.hypotheses[0].cause != "healthy"


def test_a_gradient_norm_that_grows_in_a_straight_line_while_the_loss_falls_is_stated() -> None:
    answer = run_of({"loss": falling(), "grad_norm": lambda step: 1 + 0.1 * step + 0.05 * NOISE[step]})
    assert "grows in a straight line from" in fact(answer, "norm_grows").text


def test_a_score_that_is_frozen_while_the_loss_moves_is_stated_with_its_step() -> None:
    answer = run_of({"loss": falling()}, {"eval_accuracy": lambda step: 0.3 if step < 60 else 0.4137})
    found = fact(answer, "frozen")
    assert "exactly 0.4137" in found.text
    assert found.steps == [60]


def stops_at(stop: int, spike: int, cut: int = 10_000) -> RunDiagnosis:
    return run_of(
        {
            "loss": lambda step: 4.0 - 0.02 * min(step, stop) + 0.01 * NOISE[step],
            "grad_norm": lambda step: 100.0 if step == spike else 0.5 + 0.05 * NOISE[step],
            "lr": lambda step: 1e-3 if step <= cut else 1e-5,
        },
        steps=400,
    )


def test_a_loss_that_stands_still_for_good_from_a_single_spike_on_is_stated_with_its_step() -> None:
    answer = stops_at(60, 60)
    assert fact(answer, "stops_at_spike").steps == [60]
    assert answer.hypotheses[0].cause != "healthy"


@pytest.mark.parametrize(
    "course", [(100, 60), (60, 100), (60, 60, 60)], ids=["falls on", "stood before", "the rate is cut there"]
)
def test_a_loss_that_stops_without_a_spike_there_or_with_its_rate_is_not(course: tuple[int, ...]) -> None:
    assert "stops_at_spike" not in facts(stops_at(*course))


def test_two_runs_whose_records_take_turns_are_stated_and_are_no_unshuffled_data() -> None:
    old, new = falling(2.3, 1.2), falling(1.1, 0.4)
    answer = run_of({"loss": lambda step: old(step) if step % 4 else new(step)})
    assert "two smooth curves in turn" in fact(answer, "two_curves_in_turn").text
    assert answer.hypotheses[0].cause != "unshuffled_data"
    assert "two_curves_in_turn" not in facts(run_of({"loss": lambda step: old(step) * (1 + 0.2 * NOISE[step])}))


@pytest.mark.parametrize(
    "loss", [lambda step: 0.9 - 0.005 * step, lambda step: math.exp(-step / 40), lambda step: step]
)
def test_a_loss_without_noise_is_one_curve(loss: Value) -> None:
    assert "two_curves_in_turn" not in facts(run_of({"loss": loss}))


def test_an_average_of_the_weights_that_does_not_move_is_stated_and_is_no_leak() -> None:
    def answer(average: Value) -> RunDiagnosis:
        return run_of({"train_loss": falling()}, {"val_loss": falling(2.31, 0.45), "ema_val_loss": average})

    still, moving = answer(lambda _: 2.31), answer(falling(2.32, 0.44))
    assert "the averaged weights are not updated" in fact(still, "frozen").text
    assert not {"frozen", "held_out_sets_disagree"} & set(facts(moving))
    assert "held_out_sets_disagree" not in facts(still)
    assert still.hypotheses[0].cause != "train_eval_leakage"


def test_a_loss_that_leaves_its_line_right_after_the_first_evaluation_is_stated() -> None:
    answer = run_of({"loss": lambda step: 1.0 + 0.02 * NOISE[step] + (step > 40) * 0.8}, {"eval_loss": lambda _: 1.1})
    shifted = run_of(
        {"loss": lambda step: 1.0 + 0.02 * NOISE[step] + (step > 20) * 0.8}, {"eval_loss": lambda step: 1 + step / 1e4}
    )
    assert "moves_at_event" not in facts(answer)
    found = fact(shifted, "moves_at_event")
    assert found.steps == [20]
    assert "An evaluation changes nothing of training" in found.text


def test_a_saw_tooth_is_stated_with_its_period_and_the_setting_of_that_length() -> None:
    answer = run_of(
        {"loss": falling(), "grad_norm": lambda step: 1 + 0.1 * ((step // 2) % 8) + 0.01 * NOISE[step]},
        save_steps=16, learning_rate=1e-3,
    )  # fmt: skip
    found = fact(answer, "recurs_with_period")
    assert found.values["period"] == 16
    assert "save_steps is as long" in found.text


def test_updates_below_the_spacing_of_the_number_format_are_stated_where_the_weights_are_kept_in_it() -> None:
    columns: dict[str, Value] = {"loss": falling(), "update_ratio": lambda step: 4e-4 + 1e-6 * NOISE[step]}
    assert "rounds a change below 0.001953" in fact(run_of(columns, precision="bf16-pure"), "update_below_spacing").text
    assert "update_below_spacing" not in facts(run_of(columns, precision="bf16-mixed"))
    assert "update_below_spacing" not in facts(run_of(columns, precision="fp32"))


@pytest.mark.parametrize(("settings", "averaged", "stated"), [
    ({"ema_dtype": "bfloat16", "ema_decay": 0.998}, 1.6, True),
    ({"ema_precision": "fp16", "ema_decay": 0.9999}, 2, True),
    ({"model/ema/dtype": "torch.bfloat16", "ema_decay": 0.999}, 1.9, True),
    ({"ema_dtype": "float32", "ema_decay": 0.998}, 1.6, False),
    ({"ema_dtype": "bfloat16", "ema_decay": 0.9}, 1.6, False),
    ({"ema_dtype": "bfloat16", "ema_decay": 0.998}, 0.45, False),
])  # fmt: skip
@pytest.mark.parametrize("name", ["val_ema_loss", "eval/loss_ema"])
def test_averaged_weights_that_stay_behind_are_rounded_away_where_they_are_kept_in_half_precision(
    settings: dict[str, Any], averaged: float, stated: bool, name: str
) -> None:
    evaluated: dict[str, Value] = {"val_loss": falling(2.3, 0.4), name: falling(2.3, averaged, 0.001)}
    columns: dict[str, Value] = {"loss": falling(), "grad_norm": lambda step: 1 + 0.1 * NOISE[step % 1000]}
    answer = run_of(columns, evaluated, steps=12_000, precision="fp32", **settings)
    assert ("average_below_spacing" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "low_precision_update") is stated


@pytest.mark.parametrize(("train", "held_out", "settings", "stated"), [
    (0.62, 0.8, {"beta": 0.1, "trainer": "DPOTrainer"}, True), (0.55, 0.7, {"task": "dpo"}, True),
    (0.7, 0.92, {"beta": 0.1, "loss_type": "ipo", "task": "preference"}, True),
    (0.8, 0.8, {"task": "dpo"}, False), (0.9, 0.75, {"task": "dpo"}, False),
    (0.62, 0.8, {"task": "dpo", "dropout": 0.5}, False), (0.62, 0.68, {"task": "dpo"}, False),
])  # fmt: skip
def test_training_pairs_that_are_learnt_worse_than_those_of_evaluation_are_partly_the_wrong_way_round(
    train: float, held_out: float, settings: dict[str, Any], stated: bool
) -> None:
    def learnt(level: float) -> dict[str, Value]:
        return {
            "loss": falling(0.693, 0.9 - level / 2.5, 0.01), "rewards/margins": falling(0, level - 0.5, 0.01),
            "rewards/accuracies": falling(0.5, level, 0.04),
        }  # fmt: skip

    evaluated = {f"eval_{name}": value for name, value in learnt(held_out).items()}
    answer = run_of(learnt(train), evaluated, per_device_train_batch_size=8, eval_pairs=128, **settings)
    assert ("training_pairs_behind" in facts(answer)) is stated
    assert answer.hypotheses[0].cause == "preference_labels_swapped" or not stated


def test_an_evaluation_as_low_as_training_after_many_passes_is_stated() -> None:
    loss = falling(4.0, 0.02, 1e-4)
    answer = run_of({"loss": loss}, {"eval_loss": loss}, train_rows=100, per_device_train_batch_size=20, steps=320)
    assert "after 64 passes" in fact(answer, "evaluation_as_low").text


def test_a_language_model_that_is_too_good_within_one_pass_is_stated() -> None:
    settings: dict[str, Any] = {
        "task": "language modeling",
        "vocab_size": 1000,
        "train_rows": 8000,
        "per_device_train_batch_size": 16,
    }
    answer = run_of({"loss": falling(6.9, 0.2, 1e-3)}, steps=320, **settings)
    assert "within 0.64 passes over the data" in fact(answer, "too_low_for_one_pass").text
    assert "too_low_for_one_pass" not in facts(run_of({"loss": falling(6.9, 2.0, 1e-3)}, steps=320, **settings))


def test_training_that_parts_from_evaluation_before_a_pass_is_over_is_stated_with_what_fresh_rows_do() -> None:
    known: dict[str, Any] = {"train_rows": 3000, "per_device_train_batch_size": 16, "learning_rate": 1e-3}
    fresh = falling(2.3, 1.2)
    again: Value = lambda step: 0.4 if 60 < step <= 110 else fresh(step)  # noqa: E731 - one of two curves
    evaluated: dict[str, Value] = {"eval_loss": lambda step: fresh(step) + 0.02}
    found = fact(run_of({"loss": again}, evaluated, **known), "apart_within_first_pass")
    assert found.values["train"] == pytest.approx(0.4)
    assert found.values["passes"] < 1
    assert "apart_within_first_pass" not in facts(run_of({"loss": fresh}, evaluated, **known))
    many = known | {"train_rows": 300}
    assert "apart_within_first_pass" not in facts(run_of({"loss": again}, evaluated, **many))


def test_a_loss_above_that_of_any_guess_that_is_as_often_right_is_stated_whatever_the_classes() -> None:
    right: Value = lambda step: 0.8 + 0.0002 * step  # noqa: E731 - one of two curves
    far = run_of({"cross_entropy_loss": falling(9, 5, 0.1), "accuracy": right})
    assert "over 1,000 classes and guessed, " in fact(far, "worse_than_any_guess").text
    assert "worse_than_any_guess" not in facts(run_of({"cross_entropy": falling(2.3, 0.6), "accuracy": right}))
    binary = run_of({"binary_crossentropy": falling(9, 7, 0.01)})
    assert "0.6931 at most" in fact(binary, "worse_than_any_guess").text
    done = run_of({"loss": falling(2.3, 0.3), "accuracy": lambda _: 0.99})
    assert "worse_than_any_guess" not in facts(done)
    for start, end in ((25, 2), (4.2, 2.0)):  # a sum over characters or parts; a penalty of weights within the loss
        assert "worse_than_any_guess" not in facts(run_of({"loss": falling(start, end), "accuracy": right}))


def test_answers_that_are_hardly_written_any_more_are_stated_in_times_of_their_nats() -> None:
    def preference(lost: float) -> RunDiagnosis:
        learns = falling(0.69, 0.05)
        return run_of({
            "loss": learns,
            "rewards/margins": lambda step: 10 * (0.69 - learns(step)),
            "rewards/accuracies": lambda step: min(1.0, 0.5 + step / 100),
            "logps/chosen": lambda step: -70 - lost * (1 - math.exp(-step / 30)) + NOISE[step],
            "logps/rejected": lambda step: -70 - 3 * lost * (1 - math.exp(-step / 30)) + NOISE[step],
        }, beta=0.1, task="dpo")  # fmt: skip

    sunk = preference(150)
    assert fact(sunk, "logps_multiplied").values["last"] < -200
    assert {"dpo_collapse", "lr_too_high"} & {one.cause for one in sunk.hypotheses[:2]}
    assert "logps_multiplied" not in facts(preference(15))


def test_rewards_above_zero_at_the_first_step_are_of_another_reference_than_the_policy_starts_from() -> None:
    def preference(chosen: float, rejected: float) -> RunDiagnosis:
        return run_of({
            "loss": falling(0.69 + max(chosen, 0), 0.5),
            "rewards/chosen": lambda step: chosen - step / 400 + NOISE[step] / 10,
            "rewards/rejected": lambda step: rejected - step / 100 + NOISE[step] / 10,
        }, beta=0.1, task="dpo")  # fmt: skip

    off = preference(1.7, 1.6)
    assert fact(off, "begins_off_reference").values["chosen"] > 1.5
    assert off.hypotheses[0].cause != "healthy"
    for chosen, rejected in ((0.0, 0.0), (-2.4, -2.5), (0.1, 1.6)):  # as its reference; log-probabilities; one of both
        assert "begins_off_reference" not in facts(preference(chosen, rejected))


def test_an_agent_whose_entropy_stays_that_of_equal_probabilities_acts_at_random() -> None:
    reward: Value = lambda step: 20 + NOISE[step]  # noqa: E731 - one of two curves
    still: dict[str, Value] = {"ep_rew_mean": reward, "entropy": lambda step: math.log(4) - 1e-4 * abs(NOISE[step])}
    assert "= ln 4" in fact(run_of(still, algorithm="PPO", env="LunarLander"), "uniform_policy").text
    moves = still | {"entropy": lambda step: math.log(4) - 0.004 * step}
    assert "uniform_policy" not in facts(run_of(moves, algorithm="PPO", env="LunarLander"))


def test_an_evaluation_no_better_than_the_share_of_ones_is_stated_with_the_loss_of_the_constant_guess() -> None:
    share: dict[str, Value] = {"eval_label_mean": lambda _: 0.2, "eval_auc": lambda step: 0.51 + 1e-4 * step}
    entropy = -0.2 * math.log(0.2) - 0.8 * math.log(0.8)
    stuck = run_of({"loss": falling(0.69, 0.49)}, share | {"eval_loss": lambda _: entropy + 0.004})
    found = fact(stuck, "no_better_than_constant")
    assert found.values["constant"] == pytest.approx(entropy)
    assert "chance has 0.5" in found.text
    learns = run_of({"loss": falling(0.69, 0.35)}, share | {"eval_loss": falling(0.69, 0.36)})
    assert "no_better_than_constant" not in facts(learns)


@pytest.mark.parametrize(("columns", "evaluated", "settings", "cause"), [
    ({"loss": lambda step: 4 * falling()(step)}, {"eval_loss": falling()}, {"gradient_accumulation_steps": 4},
     "grad_accum_scaling"),
    ({"loss": falling(), "update_ratio": lambda _: 4e-4}, {}, {"precision": "bf16-pure"}, "low_precision_update"),
    ({"loss": falling()}, {"val_pixel_acc": lambda step: 1 - 0.3 * math.exp(-step / 40),
                           "val_miou": lambda step: 0.003 - step * 1e-5}, {}, "metric_bug"),
])  # fmt: skip
def test_the_ranking_follows_what_arithmetic_says(
    columns: dict[str, Value], evaluated: dict[str, Value], settings: dict[str, Any], cause: str
) -> None:
    leading = [one.cause for one in run_of(columns, evaluated, **settings).hypotheses[:2]]
    assert cause in leading


@pytest.mark.parametrize("settings", [{"hidden_size": 2}, {"d_model": 1}])
def test_a_model_that_is_far_too_small_leads_where_neither_set_is_fitted(settings: dict[str, Any]) -> None:
    loss = falling(2.3, 1.85, 0.005)
    answer = run_of({"loss": loss}, {"eval_loss": lambda step: loss(step) + 0.03}, num_labels=10, **settings)
    assert "too_little_capacity" in [one.cause for one in answer.hypotheses[:2]]


def test_an_evaluation_far_above_all_that_training_ever_had_is_prepared_otherwise() -> None:
    answer = run_of(
        {"mse": falling(5.0, 0.01, 0.0)}, {"valid_mse": lambda step: 4000.0 + 60_000 * math.exp(-step / 20)}
    )
    stated = fact(answer, "evaluation_beyond_start")
    assert stated.values["lowest"] > 4000
    assert answer.hypotheses[0].cause in ("train_eval_mismatch", "eval_mode_bug")


@pytest.mark.parametrize(
    "evaluated",
    [
        pytest.param(lambda step: 250 * falling(5.0, 0.01, 0.0)(step), id="a sum over the rows"),
        pytest.param(lambda step: 4.0 + 5 * (1 - math.exp(-step / 60)), id="rows known by heart"),
    ],
)
def test_another_scale_or_overfitting_is_not_called_another_preparation(evaluated: Value) -> None:
    answer = run_of({"mse": falling(5.0, 0.01, 0.0)}, {"valid_mse": evaluated})
    assert "evaluation_beyond_start" not in facts(answer)


def test_a_log_without_its_beginning_does_not_tell_what_training_began_with() -> None:
    records = [{"step": 4000 + 50 * at, "loss": 0.004 - 1e-5 * at, "val_loss": 1.0 + at * at / 900} for at in range(30)]
    assert "evaluation_beyond_start" not in facts(diagnose_run(records))
    assert "evaluation_beyond_start" in facts(
        diagnose_run([record | {"step": record["step"] - 4000} for record in records])
    )


def test_losses_below_zero_do_not_come_down_from_what_follows() -> None:
    answer = run_of({"loss": lambda step: -0.4 + 1e-4 * step}, {"val_loss": lambda step: -0.4 - 1e-4 * step})
    assert "evaluation_began_alike" not in facts(answer)


def test_an_evaluation_that_came_down_with_training_is_not_prepared_otherwise() -> None:
    loss = falling(5.0, 1.0, 0.01)
    alike = run_of({"loss": loss}, {"val_loss": lambda step: max(loss(step), 2.9) + 0.01 * step})
    stated = fact(alike, "evaluation_began_alike")
    assert stated.values["evaluation"] == pytest.approx(loss(20) + 0.2)
    apart = run_of({"loss": loss}, {"val_loss": lambda step: 1.5 + max(loss(step), 2.9) + 0.01 * step})
    assert "evaluation_began_alike" not in facts(apart)
    shares = [{one.cause: one.probability for one in answer.hypotheses} for answer in (alike, apart)]
    assert shares[0]["train_eval_mismatch"] < shares[1]["train_eval_mismatch"]


def test_one_held_out_set_served_as_training_is_and_another_far_worse_point_to_a_leak() -> None:
    loss = falling(1.0, 0.01, 0.0)
    answer = run_of({"loss": loss}, {"val_loss": loss, "holdout_loss": lambda step: 0.7 + step / 200})
    stated = fact(answer, "held_out_sets_disagree")
    assert stated.values["far"] - stated.values["near"] > 1
    assert answer.hypotheses[0].cause == "train_eval_leakage"
    alike = run_of({"loss": loss}, {"val_loss": loss, "holdout_loss": lambda step: loss(step) + 0.1})
    assert "held_out_sets_disagree" not in facts(alike)


def test_jumps_of_which_each_pass_has_one_at_another_place_are_of_the_same_rows() -> None:
    at = [37, 61, 112, 190, 215, 268, 333, 351, 420, 464]
    records = [
        {"step": step, "epoch": step // 50, "mse": 0.3 + 0.02 * NOISE[step] + 900.0 * (step in at)}
        for step in range(500)
    ]
    answer = diagnose_run(records)
    stated = fact(answer, "one_jump_a_pass")
    assert (stated.values["jumps"], stated.values["passes"]) == (10, 10)
    assert answer.hypotheses[0].cause in ("bad_data_pocket", "bad_batch")


def test_jumps_that_fall_into_passes_at_random_are_not() -> None:
    at = [37, 41, 112, 140, 215, 268, 269, 351, 420, 444]
    records = [
        {"step": step, "epoch": step // 50, "mse": 0.3 + 0.02 * NOISE[step] + 900.0 * (step in at)}
        for step in range(500)
    ]
    assert "one_jump_a_pass" not in facts(diagnose_run(records))


TEETH, CLASSES, SOURCES = [0.9, 0.5, 0.3, 0.1, -0.2] * 4, [0.8, 0.4, 0.1, 0.8, 0.3, 0.0] * 3, [0.0, 0.9, -0.3, 0.4] * 5


@pytest.mark.parametrize(("places", "passes"), [(TEETH, 4), (CLASSES, 5), (SOURCES, 6)])
def test_an_order_that_comes_again_in_four_passes_ever_more_faintly_is_not_shuffled(
    places: list[float], passes: int
) -> None:
    def answer(ups_and_downs: NDArray[np.float64]) -> RunDiagnosis:
        count = len(ups_and_downs)
        base = (2.5 + 1.5 * np.exp(-4 * np.arange(count) / count)) * (1 + 0.02 * np.array(NOISE[:count]))
        epoch = np.arange(1, count + 1) / len(places)
        records = zip(range(1, count + 1), epoch.tolist(), (base + ups_and_downs).tolist(), strict=True)
        return diagnose_run([{"step": step, "epoch": at, "loss": loss} for step, at, loss in records])

    draw = np.random.default_rng(1)
    in_order = answer(np.concatenate([np.multiply(places, 0.65**k) for k in range(passes)]))
    assert in_order.hypotheses[0].cause == "unshuffled_data"
    assert "whole_order_recurs" in facts(in_order)
    shuffled = answer(np.concatenate([draw.permutation(places) * 0.65**k for k in range(passes)]))
    assert shuffled.hypotheses[0].cause == "healthy"
    pocket = answer(np.tile([3.0 if place in (7, 8) else 0.0 for place in range(len(places))], passes))
    assert pocket.hypotheses[0].cause == "bad_data_pocket"
    assert "whole_order_recurs" not in facts(pocket)


def test_a_part_of_the_loss_that_rises_a_little_while_the_rest_falls_is_not_trained() -> None:
    answer = run_of(
        {
            "loss": lambda step: 1.386 + step / 3000 + falling(1.4, 0.001, 0.0)(step),
            "slot_loss": lambda step: 1.386 + step / 3000,
            "intent_loss": falling(1.4, 0.001, 0.0),
        },
        {"eval_slot_loss": lambda step: 1.39 + step / 3000, "eval_intent_loss": falling(1.4, 0.001, 0.0)},
    )
    assert "part_stays" in facts(answer)
    assert answer.hypotheses[0].cause in ("params_not_training", "wrong_loss")
    assert not any(one.symptom == "held_out_sets_part" and one.state == "present" for one in answer.findings)


def test_the_values_on_both_sides_of_a_resume_stand_in_one_line_with_what_left_its_course(tmp_path: Path) -> None:
    def records(rate_after: float, epoch_after: float) -> list[dict[str, float]]:
        return [
            {
                "step": float(step), "loss": 2.0 + 0.01 * NOISE[step], "grad_norm": 1 + 0.05 * NOISE[step],
                "learning_rate": rate_after if step >= 50 else 1e-3,
                "epoch": step / 100 - (0.5 - epoch_after if step >= 50 else 0.0),
                "elapsed time per iteration (ms)": 4050.0,
            }
            for step in range(100)
        ]  # fmt: skip

    def around(rate_after: float, epoch_after: float) -> DerivedFact:
        log = "".join(
            json.dumps(record) + "\n" + ('{"event": "resume", "step": 50}\n' if record["step"] == 49 else "")
            for record in records(rate_after, epoch_after)
        )
        path.write_text(log)
        return next(one for one in diagnose_run(path).sheet.facts if "after the resume" in one.text)

    path = tmp_path / "log.jsonl"
    lost = around(1e-2, 0.0)
    assert lost.fact == "moves_at_resume"
    assert "learning_rate 0.001 | 0.01;" in lost.text
    assert "epoch 0.49 | 0, 0.01, 0.02;" in lost.text
    assert "Off course: learning_rate, epoch." in lost.text
    assert "elapsed time per iteration (ms) in s 4.05 | 4.05" in lost.text
    whole = around(1e-3, 0.5)
    assert whole.fact == "around_resume"
    assert "Off course" not in whole.text


@pytest.mark.parametrize("sign", [1, -1])
def test_a_part_that_is_subtracted_from_the_loss_is_stated_with_its_factor(sign: int) -> None:
    first, second = falling(2.0, 1.0), falling(6.0, 0.5, 0.03)
    answer = run_of(
        {"loss": lambda step: second(step) + sign * first(step), "loss_cls": first, "loss_reg": second}, steps=120
    )
    assert ("part_subtracted" in facts(answer)) is (sign < 0)
    if sign < 0:
        assert "loss holds loss_cls with the factor -1 " in fact(answer, "part_subtracted").text


def test_a_part_that_rises_while_the_loss_falls_is_stated() -> None:
    def rising(step: int) -> float:
        return 0.1 + step / 400 + 0.001 * NOISE[step]

    second = falling(6.0, 0.5)
    answer = run_of({"loss": lambda step: rising(step) + second(step), "loss_cls": rising, "loss_reg": second})
    assert "loss_cls rises from about 0.1" in fact(answer, "part_rises").text


@pytest.mark.parametrize(("name", "lowest"), [("ce", -60.0), ("ce", 1.0), ("kl_loss", -60.0)])
def test_a_part_that_is_given_up_for_one_below_zero_is_a_wrong_loss(name: str, lowest: float) -> None:
    def rising(step: int) -> float:
        return 4.0 + step / 5 + 0.01 * NOISE[step]

    def other(step: int) -> float:
        return -4.0 + (lowest + 4.0) * step / 120 + 40 * (lowest > 0) * (1 - step / 100)

    answer = run_of({name: rising, "recon": other, "loss": lambda step: (rising(step) + other(step)) / 2})
    assert ("part_given_up" in facts(answer)) is (name == "ce" and lowest < 0)
    assert ("part_rises" in facts(answer)) is (lowest > 0)
    if "part_given_up" in facts(answer):
        assert answer.hypotheses[0].cause == "wrong_loss"
        assert "what falls below zero has no end" in fact(answer, "part_given_up").text


@pytest.mark.parametrize("factor", [0.3, -0.01])
def test_an_entropy_that_the_loss_of_a_policy_grows_with_is_stated(factor: float) -> None:
    entropy, policy, value = falling(0.69, 0.1, 0.001), falling(0.02, 0.01, 0.01), falling(3.0, 0.2, 0.1)
    answer = run_of(
        {
            "train/loss": lambda step: policy(step) + 0.5 * value(step) + factor * entropy(step),
            "train/policy_gradient_loss": policy, "train/value_loss": value, "train/entropy": entropy,
            "train/approx_kl": lambda step: 0.01 + 0.001 * NOISE[step], "rollout/ep_rew_mean": lambda step: step / 10,
        }
    )  # fmt: skip
    assert ("entropy_lowered" in facts(answer)) is (factor > 0)
    if factor > 0:
        assert "with the factor +0.3 " in fact(answer, "entropy_lowered").text


@pytest.mark.parametrize(("level", "stated"), [(0.2, True), (0.6, False)])
def test_a_cross_entropy_below_what_its_wrong_answers_cost_is_stated_with_the_arithmetic(
    level: float, stated: bool
) -> None:
    answer = run_of({"loss": falling()}, {"eval_loss": lambda _: level, "eval_acc": lambda step: 0.2 + step / 1e4})
    assert ("loss_contradicts_accuracy" in facts(answer)) is stated
    if stated:
        assert "x 0.6931 = 0.54" in fact(answer, "loss_contradicts_accuracy").text


@pytest.mark.parametrize(("name", "stated"), [("Accuracy", False), ("train_accuracy", True)])
def test_an_accuracy_that_may_be_of_held_out_rows_contradicts_no_training_loss(name: str, stated: bool) -> None:
    answer = run_of({"loss": lambda step: 2 * 0.95**step + 0.01, name: lambda step: min(0.8, 0.2 + step / 100)})
    assert ("loss_contradicts_accuracy" in facts(answer)) is stated


@pytest.mark.parametrize(("gain", "stated"), [(0.001, True), (-0.001, False)])
def test_a_training_loss_that_rises_while_its_rows_are_ordered_better_is_another(gain: float, stated: bool) -> None:
    answer = run_of({"train-logloss": lambda step: 0.5 + step / 100, "train-auc": lambda step: 0.7 + gain * step})
    assert ("loss_rises_with_order" in facts(answer)) is stated


@pytest.mark.parametrize(("mixup", "stated"), [(0.0, True), (0.8, False)])
def test_labels_that_are_mixed_explain_that_training_answers_fewer(mixup: float, stated: bool) -> None:
    scores: dict[str, Value] = {"loss": falling(), "accuracy": lambda _: 0.5}
    answer = run_of(scores, {"eval_loss": falling(), "eval_accuracy": lambda _: 0.97}, mixup=mixup)
    assert any("training_behind" in name for name in facts(answer)) is stated


def test_exact_matches_of_whole_sequences_contradict_no_loss_of_tokens() -> None:
    answer = run_of({"loss": falling()}, {"eval_loss": lambda _: 0.1, "eval_exact_match_accuracy": lambda _: 0.2})
    assert "loss_contradicts_accuracy" not in facts(answer)


def test_an_accuracy_of_the_larger_class_is_stated_beside_the_setting() -> None:
    answer = run_of(
        {"loss": falling(0.7, 0.5)},
        {"val_loss": falling(0.7, 0.5), "val_acc": lambda step: 0.8 + 0.001 * (step % 40 > 0)},
        positive_share=0.2,
        task="binary classification",
    )
    found = fact(answer, "accuracy_of_majority")
    assert "positive_share is 0.2, so one answer for all rows is right in 0.8" in found.text
    assert "a loss of 0.5004" in found.text


def test_pixels_that_are_all_background_by_the_arithmetic_are_a_rare_class_and_no_broken_metric() -> None:
    answer = run_of(
        {"loss": falling(0.3, 0.04)},
        {
            "eval_pix_acc": lambda _: 0.9931, "eval_iou_fg": lambda _: 0.0, "eval_recall_fg": lambda _: 0.0,
            "eval_pred_fg_frac": lambda _: 0.0, "eval_gt_fg_frac": lambda _: 0.0069,
        },
    )  # fmt: skip
    assert "is 0.0069, so one answer for all rows is right in 0.9931" in fact(answer, "rare_class_unanswered").text
    assert answer.hypotheses[0].cause == "class_imbalance"
    found = run_of(
        {"loss": falling(0.3, 0.04)}, {"eval_pix_acc": lambda _: 0.9961, "eval_gt_fg_frac": lambda _: 0.0069}
    )
    assert "rare_class_unanswered" not in facts(found)


@pytest.mark.parametrize(("share", "stated"), [(0.4, True), (0.1, False)])
def test_a_policy_that_is_clipped_more_than_any_healthy_one_is_stated_with_what_those_have(
    share: float, stated: bool
) -> None:
    answer = run_of(
        {
            "train/clip_fraction": lambda step: share + 0.01 * NOISE[step], "train/value_loss": falling(),
            "train/approx_kl": lambda step: 0.01 + 0.001 * NOISE[step], "rollout/ep_rew_mean": lambda step: step / 10,
        }
    )  # fmt: skip
    assert ("much_clipped" in facts(answer)) is stated
    if stated:
        assert "Of 56 healthy policies" in fact(answer, "much_clipped").text


@pytest.mark.parametrize(("start", "value", "stated"), [
    (math.log(92), "ckpt/base", True), (math.log(92), "scratch", False), (1.5, "ckpt/base", False),
])  # fmt: skip
def test_a_model_that_comes_trained_and_starts_with_the_loss_of_a_guess_is_stated(
    start: float, value: str, stated: bool
) -> None:
    answer = run_of({"loss": lambda step: start - (step - 2) / 400}, vocab_size=92, init_from=value, task="lm")
    assert ("starts_untrained" in facts(answer)) is stated
    if stated:
        assert "by the setting init_from" in fact(answer, "starts_untrained").text


def test_a_loss_that_jumps_up_at_a_resume_and_stays_there_is_of_a_state_that_was_lost_and_not_of_rows_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log.jsonl"
    records = [{"step": step, "loss": 0.7 + 0.005 * NOISE[step] + 0.1 * (step >= 50)} for step in range(100)]
    lines = [json.dumps(record) for record in records]
    path.write_text("\n".join([*lines[:50], '{"event": "resume", "step": 50}', *lines[50:]]) + "\n")
    diagnosis = diagnose_run(path)
    share = {hypothesis.cause: hypothesis.probability for hypothesis in diagnosis.hypotheses}
    assert any(fact.fact == "rises_at_resume" for fact in diagnosis.sheet.facts)
    assert diagnosis.hypotheses[0].cause == "resume_state_lost"
    assert share["resume_data_replayed"] < 0.05


@pytest.mark.parametrize(("norm_after", "stated"), [(0.0, True), (1e-4, False)])
def test_a_loss_and_a_gradient_that_are_exactly_zero_to_the_end_are_training_that_stopped(
    norm_after: float, stated: bool
) -> None:
    diagnosis = run_of({
        "loss": lambda step: 3.0 - 0.02 * step + 0.01 * NOISE[step] if step < 100 else 0.0,
        "grad_norm": lambda step: 1.0 + 0.1 * NOISE[step] if step < 100 else norm_after,
    })  # fmt: skip
    assert any(fact.fact == "nothing_trained" for fact in diagnosis.sheet.facts) is stated
    assert (diagnosis.hypotheses[0].cause == "all_labels_masked") is stated


@pytest.mark.parametrize(("first_norm", "cause"), [(math.nan, "invalid_math"), (0.0, "all_labels_masked")])
def test_a_first_loss_that_is_lost_with_its_gradient_is_not_of_labels_that_are_all_masked(
    first_norm: float, cause: str
) -> None:
    diagnosis = run_of({
        "loss": lambda _: math.nan,
        "loss_E": lambda step: 0.05 if step == 2 or not math.isnan(first_norm) else math.nan,
        "grad_norm": lambda _: first_norm,
    })  # fmt: skip
    assert ("lost_with_gradient" in facts(diagnosis)) is math.isnan(first_norm)
    assert diagnosis.hypotheses[0].cause == cause
    if math.isnan(first_norm):
        assert "loss_E is 0.05 there, and not finite later" in fact(diagnosis, "lost_with_gradient").text


@pytest.mark.parametrize(("of_training_rows", "stated"), [(0.71, "evaluation_differs"), (0.97, "gap_between_rows")])
def test_rows_of_training_that_are_evaluated_tell_what_makes_the_gap(of_training_rows: float, stated: str) -> None:
    rising = lambda step: 0.98 - math.exp(-step / 20)  # noqa: E731
    evaluated = {"val_acc": lambda step: 0.7 - math.exp(-step / 20) / 2} | {
        "val_trainsubset_acc": lambda step: of_training_rows - math.exp(-step / 20) / 2
    }
    answer = run_of({"loss": falling(), "train_acc": rising}, evaluated)
    assert stated in facts(answer)
    shares = {hypothesis.cause: hypothesis.probability for hypothesis in answer.hypotheses}
    differs = stated == "evaluation_differs"
    assert (shares["eval_mode_bug"] > shares["overfitting"]) is differs
    dropped = run_of({"loss": falling(), "train_acc": rising}, evaluated, dropout=0.4)
    assert (stated in facts(dropped)) is differs  # without dropout these rows do better than in training
    without = run_of({"loss": falling(), "train_acc": rising}, {"val_acc": evaluated["val_acc"]})
    assert {"evaluation_differs", "gap_between_rows"}.isdisjoint(facts(without))


@pytest.mark.parametrize(("names", "lowest", "stated"), [
    (("decode.loss_ce", "train_subset/loss_ce"), (0.1, 0.35), {"evaluation_differs"}),
    (("decode.loss_ce", "train_rows/loss_ce"), (0.1, 0.12), {"gap_between_rows"}),
    (("decode.loss_ce", "trainset/loss_ce"), (0.1, 0.35), {"evaluation_differs"}),
    (("decode.loss_ce", "train_split/loss_ce"), (0.05, 0.4), {"evaluation_differs"}),
    (("decode.loss_ce", "training_data/loss_ce"), (0.1, 0.12), {"gap_between_rows"}),
    (("decode.loss_aux", "train_subset/loss_ce"), (0.1, 0.35), set[str]()),
    (("decode.loss_ce", "train_aux/loss_ce"), (0.1, 0.35), set[str]()),
    (("decode.loss_ce", "train_subset/loss_ce"), (0.6, 0.35), set[str]()),
])  # fmt: skip
def test_a_set_of_training_rows_that_is_evaluated_compares_with_the_same_part_of_the_loss(
    names: tuple[str, str], lowest: tuple[float, float], stated: set[str]
) -> None:
    training, again, held_out = (
        (lambda step, low=low: low + math.exp(-step / 20) + 0.002 * NOISE[step]) for low in (*lowest, 0.36)
    )
    answer = run_of({"loss": falling(), names[0]: training}, {names[1]: again, "val/loss_ce": held_out})
    assert {"evaluation_differs", "gap_between_rows"} & set(facts(answer)) == stated
    assert (answer.hypotheses[0].cause == "eval_mode_bug") is ("evaluation_differs" in stated)


@pytest.mark.parametrize(("first", "stated"), [(240.0, True), (9.0, False)])
def test_a_first_loss_of_many_times_a_guess_is_stated(first: float, stated: bool) -> None:
    answer = run_of({"loss": falling(high=first)}, vocab_size=13)
    assert ("first_loss_far_beyond_guess" in facts(answer)) is stated
    if stated:
        assert answer.hypotheses[0].cause != "tokenizer_mismatch"


def test_a_loss_and_a_gradient_that_are_learnt_down_to_the_last_digit_are_small_and_not_zero() -> None:
    answer = run_of({
        "loss": lambda step: round(0.7 * math.exp(-step / 8), 4),
        "grad_norm": lambda step: round(0.5 * math.exp(-step / 9), 3),
        "accuracy": lambda step: min(1.0, 0.7 + step / 100),
    })  # fmt: skip
    assert "nothing_trained" not in facts(answer)
    assert "grad_norm_zero" not in {finding.symptom for finding in answer.present}
    assert answer.hypotheses[0].cause != "all_labels_masked"


def test_zeros_alone_from_the_first_record_on_are_labels_that_are_all_masked() -> None:
    answer = run_of(
        {"loss": lambda _: 0.0, "grad_norm": lambda _: 0.0}, {"eval_loss": lambda _: 0.0, "eval_exact": lambda _: 0.0},
        completion_only_loss=True, model="notes-lm-tiny",
    )  # fmt: skip
    assert answer.run.kind == "sft"
    assert "grad_norm_zero" in {finding.symptom for finding in answer.present}
    assert answer.hypotheses[0].cause == "all_labels_masked"


@pytest.mark.parametrize(("top", "shift", "stated"), [
    (75.0, -140.0, True), (150.0, 0.0, True), (75.0, 0.0, False), (0.75, 0.0, False), (-20.0, -60.0, False),
])  # fmt: skip
def test_an_accuracy_far_below_zero_or_above_a_hundred_per_cent_is_a_fault_of_the_metric(
    top: float, shift: float, stated: bool
) -> None:
    accuracy = lambda step: top + shift * math.exp(-step / 30) - top * 0.6 * math.exp(-step / 20)  # noqa: E731
    answer = run_of({"loss": falling(2.3, 0.8)}, {"eval_loss": falling(2.3, 0.9), "eval_accuracy": accuracy})
    assert ("outside_of_shares" in facts(answer)) is stated
    assert not stated or answer.hypotheses[0].cause == "metric_bug"


@pytest.mark.parametrize("sign", [1, -1])
def test_a_total_from_which_a_part_is_subtracted_that_runs_away_is_the_loss_that_is_wrong(sign: int) -> None:
    churn, spend = falling(0.7, 0.4), falling(4.7, 0.3)
    segment = falling(1.4, 0.5) if sign > 0 else lambda step: 1.4 * 1.06**step
    total = lambda step: churn(step) + spend(step) + sign * 0.5 * segment(step)  # noqa: E731
    parts = {"churn_loss": churn, "spend_loss": spend, "segment_loss": segment, "total": total}
    answer = run_of({f"train/{name}": part for name, part in parts.items()})
    assert ("part_subtracted" in facts(answer)) is (sign < 0)
    assert answer.hypotheses[0].cause == ("healthy" if sign > 0 else "wrong_loss")


@pytest.mark.parametrize(("settings", "stated"), [
    ({"dropout": 0.5}, "disturbed_training_behind"),
    ({"augment": ["random_shift(2)", "random_erasing"]}, "disturbed_training_behind"),
    ({"dropout": 0.1, "augment": "none"}, "training_behind"),
    ({"dropout": 0.0, "augment": False}, "undisturbed_training_behind"),
    ({}, "training_behind"),
])  # fmt: skip
def test_training_behind_by_dropout_or_augmentation_in_the_settings_needs_no_wrong_labels(
    settings: dict[str, Any], stated: str
) -> None:
    scores: dict[str, Value] = {"loss": falling(2.3, 1.2), "accuracy": lambda step: 0.6 - 0.5 * math.exp(-step / 30)}
    evaluated: dict[str, Value] = {
        "eval_loss": falling(2.3, 0.15), "eval_accuracy": lambda step: 0.98 - 0.5 * math.exp(-step / 20),
    }  # fmt: skip
    answer = run_of(scores, evaluated, num_labels=10, **settings)
    assert [name for name in facts(answer) if "training_behind" in name] == [stated]
    assert answer.hypotheses[0].cause == ("healthy" if stated.startswith("disturbed") else "label_noise")


@pytest.mark.parametrize(("key", "stated"), [
    ("baselines/val_mse_window_mean", True), ("naive_loss", True), ("baseline_loss_coef", False), ("val_mse", False),
])  # fmt: skip
@pytest.mark.parametrize("level", [0.86, 0.96])
def test_a_loss_that_rests_at_its_noise_below_a_baseline_in_the_settings_is_no_plateau(
    key: str, stated: bool, level: float
) -> None:
    loss: Value = lambda step: level + 0.05 * NOISE[step]  # noqa: E731
    settings: dict[str, Any] = {key: 0.98, "loss": "mse"}
    answer = run_of({"loss": loss}, {"eval_loss": lambda step: level + 0.002 * NOISE[step]}, **settings)
    below = stated and level == 0.86
    assert ("better_than_baseline" in facts(answer)) is below
    assert any(each.symptom == "loss_plateau" and each.state is State.PRESENT for each in answer.findings) is not below
    assert (answer.hypotheses[0].cause == "healthy") is below
