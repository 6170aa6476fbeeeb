"""What columns say together of success, labels, repeated evaluations, cycles and parts that stand still."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import runs

from mldebug_mcp import RunDiagnosis, diagnose_run

NOISE = np.random.default_rng(8).normal(0, 1, 1000)
diagnosed = partial(runs.diagnosed, steps=200)


def facts(answer: RunDiagnosis) -> dict[str, str]:
    return {fact.fact: fact.text for fact in answer.sheet.facts}


def falling(start: float, end: float, within: float = 30.0) -> Any:
    return lambda step: end + (start - end) * math.exp(-step / within) * (1 + 0.01 * float(NOISE[step]))


def still(value: float) -> Any:
    return lambda _: value


POLICY: dict[str, Any] = {
    "reward": lambda step: 0.3 + 0.7 * (1 - math.exp(-step / 60)) + 0.01 * float(NOISE[step]),
    "entropy": lambda step: 1.8 - step / 250,
    "kl": lambda step: step / 100,
}


@pytest.mark.parametrize(("name", "end", "stated"), [
    ("audit_correct", 0.15, ["success_falls_with_reward"]),
    ("human_panel_ok", 0.0, ["success_falls_with_reward", "success_gone"]),
    ("audit_correct", 0.34, []), ("token7_share", 0.0, []), ("audit_wrong_share", 0.0, []),
])  # fmt: skip
def test_a_success_that_falls_while_the_reward_rises_is_of_a_reward_that_is_hacked(
    name: str, end: float, stated: list[str]
) -> None:
    columns = POLICY | {name: lambda step: falling(0.38, end, 60)(step) + 0.005 * float(NOISE[-step])}
    answer = diagnosed(columns, algorithm="grpo")
    assert [fact for fact in facts(answer) if fact.startswith("success_")] == stated
    assert (answer.hypotheses[0].cause == "reward_hacking") is bool(stated)


def test_one_of_several_successes_that_falls_is_a_trade_between_tasks() -> None:
    evaluated = {"eval_exact_a_acc": falling(0.6, 0.1), "eval_exact_b_acc": still(0.6), "eval_exact_c_acc": still(0.7)}
    assert not any(fact.startswith("success_") for fact in facts(diagnosed(POLICY, evaluated, algorithm="grpo")))


@pytest.mark.parametrize(("end", "stated"), [(0.02, True), (0.2, False), (0.9, False)])
def test_pairs_that_are_learnt_against_a_panel_are_labelled_the_other_way(end: float, stated: bool) -> None:
    def accuracy(step: int) -> float:
        return 0.98 - 0.48 * math.exp(-step / 30)

    columns = {"loss": falling(0.69, 0.1), "accuracy": accuracy, "margin": lambda step: step / 50}
    evaluated = {"val_acc": accuracy, "expert_panel_agree": falling(0.28, end, 40)}
    answer = diagnosed(columns, evaluated, task="reward model")
    assert ("success_falls_with_pairs" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "preference_labels_swapped") is stated


@pytest.mark.parametrize(("pick", "usual", "picked", "right", "stated"), [
    ("best_of_8_human_score", "first_of_8_human_score", 0.27, 0.9, True),
    ("eval/gold_quality_bon16", "eval/gold_quality_random", -0.4, 0.8, True),
    ("val_judge_bo16", "val_judge_bo1", 0.35, 0.7, True), ("top1_human_rating", "mean_human_rating", 0.3, 0.9, True),
    ("best_of_8_human_score", "first_of_8_human_score", 0.6, 0.9, False),
    ("best_of_8_human_score", "first_of_8_human_score", 0.43, 0.9, False),
    ("best_of_8_human_score", "first_of_8_human_score", 0.27, 0.55, False),
    ("best_of_8_human_errors", "first_of_8_human_errors", 0.27, 0.9, False),
])  # fmt: skip
def test_a_ranker_whose_picks_are_worse_than_any_answer_has_pairs_the_other_way_round(
    pick: str, usual: str, picked: float, right: float, stated: bool
) -> None:
    def accuracy(step: int) -> float:
        return right - (right - 0.5) * math.exp(-step / 30)

    columns = {"loss": falling(0.69, 0.5), "accuracy": accuracy, "margin": lambda step: step / 200}
    scores = {pick: falling(picked + 0.02, picked), usual: still(0.45)}
    answer = diagnosed(
        columns, {"eval_loss": falling(0.69, 0.52), "eval_accuracy": accuracy} | scores, task="reward model"
    )
    assert ("picks_worse_than_chance" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "preference_labels_swapped") is stated


@pytest.mark.parametrize(("end", "eval_end", "task", "stated"), [
    (0.0, 0.01, "ops lm", True), (0.8, 0.01, "ops lm", False), (0.0, 4.0, "ops lm", False),
    (0.0, 0.01, "image classification", False),
])  # fmt: skip
def test_a_model_of_text_that_unlearns_to_write_while_both_losses_fall_has_shifted_labels(
    end: float, eval_end: float, task: str, stated: bool
) -> None:
    evaluated = {"dev_loss": falling(6, eval_end), "free_run_ok": falling(1, end, 8)}
    answer = diagnosed({"loss": falling(6, 0.01)}, evaluated, task=task)
    assert ("success_falls_with_loss" in facts(answer)) is stated
    assert not stated or answer.hypotheses[0].cause == "label_shift_error"


@pytest.mark.parametrize(("late", "stated"), [
    (lambda step: step % 3 // 2, True), (lambda step: 4 + step % 3, False), (lambda step: 120 + step % 9, False),
])  # fmt: skip
def test_tokens_with_a_label_that_run_out_train_nothing(late: Any, stated: bool) -> None:
    columns = {
        "loss": lambda step: (2.0 - step / 100) if step < 90 else 0.3 + 0.2 * float(NOISE[step]) ** 2,
        "grad_norm": lambda step: 0.8 + 0.1 * float(NOISE[step]),
        "tgt": lambda step: late(step) if step >= 90 else 215 + step % 9,
        "tok": lambda step: 512 + step % 7,
    }
    answer = diagnosed(columns, task="sft")
    assert ("labels_run_out" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "all_labels_masked") is stated


@pytest.mark.parametrize("names", [("val_iou", "val_iou_rerun"), ("val/iou", "val/iou_pass2"),
                                   ("val_iou_pass1", "val_iou_pass2")])  # fmt: skip
@pytest.mark.parametrize(("off", "stated"), [(0.03, True), (0.0, False)])
def test_two_passes_over_the_same_rows_that_differ_are_not_in_evaluation_mode(
    names: tuple[str, str], off: float, stated: bool
) -> None:
    score = falling(0.15, 0.75, 40)
    again = lambda step: score(step) * (1 + off * (1 if step % 20 else -1))  # noqa: E731
    answer = diagnosed({"loss": falling(0.7, 0.2)}, dict(zip(names, (score, again), strict=True)))
    assert ("evaluated_twice" in facts(answer)) is stated
    assert any(hypothesis.cause == "eval_mode_bug" for hypothesis in answer.hypotheses[:1]) is stated


@pytest.mark.parametrize("names", [("val_acc", "val_acc_1"), ("val_loss_1", "val_loss_2"), ("dev/f1", "dev_2/f1")])
@pytest.mark.parametrize(("setting", "stated"), [({"eval_repeats": 2}, True), ({"n_val_passes": 3}, True),
                                                 ({"eval_repeats": 1}, False), ({}, False)])  # fmt: skip
def test_columns_with_a_number_are_of_the_same_rows_where_a_setting_repeats_evaluations(
    names: tuple[str, str], setting: dict[str, int], stated: bool
) -> None:
    score = falling(0.15, 0.75, 40)
    again = lambda step: score(step) * (1.02 if step % 20 else 0.97)  # noqa: E731
    answer = diagnosed({"loss": falling(0.7, 0.2)}, dict(zip(names, (score, again), strict=True)), **setting)
    assert ("evaluated_twice" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "eval_mode_bug") is stated


def test_a_second_set_is_no_second_evaluation() -> None:
    evaluated = {"val_iou": falling(0.1, 0.7), "val2_iou": falling(0.1, 0.6)}
    assert "evaluated_twice" not in facts(diagnosed({"loss": falling(0.7, 0.2)}, evaluated))


@pytest.mark.parametrize(("counted", "answer_tokens", "task", "stated"), [
    (464, 9, "station sft", True), (464, 29, "station sft", False), (160, 9, "station sft", False),
    (2320, 9, "station sft", False),
])  # fmt: skip
def test_as_many_tokens_in_the_loss_as_rows_have_are_more_than_their_answers(
    counted: float, answer_tokens: float, task: str, stated: bool
) -> None:
    columns = {
        "loss": falling(3.7, 0.5), "loss_tokens": lambda step: counted + step % 3,
        "mean_sequence_tokens": still(30.0), "mean_answer_tokens": still(answer_tokens),
    }  # fmt: skip
    evaluated = {"eval_loss": falling(3.7, 0.01)}
    answer = diagnosed(columns, evaluated, task=task, train_on="replies", per_device_train_batch_size=16)
    assert ("prompts_count_unmeant" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "prompt_not_masked") is stated


@pytest.mark.parametrize(("change", "gradient", "fact"), [
    (0.0, 1.2, "part_stands_still_with_gradient"), (0.0, 0.0, "part_stands_still"), (0.01, 1.2, ""),
])  # fmt: skip
def test_a_part_that_never_changes_though_it_has_a_gradient_is_left_out_of_the_updates(
    change: float, gradient: float, fact: str
) -> None:
    answer = diagnosed({
        "loss": falling(0.8, 0.5), "encoder/delta_since_last_log": still(change),
        "decoder/delta_since_last_log": lambda step: 0.3 + 0.01 * float(NOISE[step]),
        "encoder/grad_norm": still(gradient), "decoder/grad_norm": still(0.4),
    })  # fmt: skip
    assert {fact for fact in facts(answer) if fact.startswith("part_stands")} == ({fact} if fact else set())
    assert (answer.hypotheses[0].cause == "params_not_training") is ("gradient" in fact)


def test_the_gradient_of_a_part_that_stands_still_is_found_by_the_name_of_the_part() -> None:
    columns = {
        "loss": falling(2.9, 2.6), "gn body": still(0.9), "gn head": still(0.2),
        "wn body": still(5.414), "wn head": falling(2.8, 10.6), "lr": still(1e-3),
    }  # fmt: skip
    assert "part_stands_still_with_gradient" in facts(diagnosed(columns))


@pytest.mark.parametrize(("end", "score", "stated"), [
    (0.15, still(0.3811), True), (0.5, still(0.3811), False), (0.15, falling(0.31, 0.4), False),
])  # fmt: skip
def test_a_score_that_stays_while_the_loss_halves_is_not_worked_out_of_the_answers(
    end: float, score: Any, stated: bool
) -> None:
    evaluated = {"val_bce": falling(0.62, end + 0.02), "val_auc": falling(0.7, 0.98), "val_micro_f1": score}
    answer = diagnosed({"train_bce": falling(0.65, end)}, evaluated)
    assert ("frozen_while_loss_halves" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "metric_bug") is stated


@pytest.mark.parametrize(("answers", "settings", "stated"), [
    (0.77, {"system_prompt_tokens": 14}, True), (1.7, {"system_prompt_tokens": 14}, False),
    (0.77, {"task": "pretraining"}, False),
])  # fmt: skip
def test_a_loss_far_from_that_on_answers_counts_other_tokens(
    answers: float, settings: dict[str, Any], stated: bool
) -> None:
    evaluated = {"eval_loss": falling(1.9, 1.73), "response_nll": falling(1.6, answers), "eval_exact": falling(0, 0.2)}
    answer = diagnosed({"loss": falling(3.6, 1.72)}, evaluated, vocab_size=40, **settings)
    assert ("loss_apart_from_answers" in facts(answer)) is stated
    assert ("prompt_not_masked" in {hypothesis.cause for hypothesis in answer.hypotheses[:2]}) is stated


def cycle(step: int) -> float:
    return 0.5 * (1 + math.cos(math.pi * (step % 50) / 50))


@pytest.mark.parametrize(("schedule", "gain", "fact"), [
    ("CosineAnnealingWarmRestarts", 0.2, "set_cycles_end_lower"), ("cosine", 0.2, "cycles_end_lower"),
    ("CosineAnnealingWarmRestarts", -0.05, ""),
])  # fmt: skip
def test_a_loss_that_ends_each_cycle_of_the_rate_lower_follows_its_schedule(
    schedule: str, gain: float, fact: str
) -> None:
    columns = {
        "loss": lambda step: 1.4 - gain * (step // 50) + 0.3 * cycle(step) + 0.005 * float(NOISE[step]),
        "lr": lambda step: 1e-3 * (0.01 + cycle(step)),
    }
    answer = diagnosed(columns, steps=199, lr_scheduler=schedule)
    found = [each for each in answer.sheet.facts if each.fact.endswith("cycles_end_lower")]
    assert [each.fact for each in found] == ([fact] if fact else [])
    assert all(each.steps[0] == 50 for each in found)
    assert fact != "set_cycles_end_lower" or answer.hypotheses[0].cause == "healthy"


@pytest.mark.parametrize(("end", "stated"), [(0.04, True), (1.2, False)])
def test_batches_of_few_rows_that_scatter_are_enough_where_evaluation_improves_steadily(
    end: float, stated: bool
) -> None:
    columns = {"loss": lambda step: abs(falling(1.7, end, 40)(step) * (1 + 0.2 * float(NOISE[step])))}
    answer = diagnosed(columns, {"val_loss": falling(1.7, end, 40)}, batch_size=4)
    assert ("few_rows_learn" in facts(answer)) is stated
    assert not stated or answer.hypotheses[0].cause == "healthy"


@pytest.mark.parametrize(("far", "stated"), [(0.9, True), (0.14, False)])
def test_a_set_of_another_year_that_is_far_worse_than_rows_drawn_at_random_tells_of_a_leak(
    far: float, stated: bool
) -> None:
    evaluated = {
        "val_loss": falling(0.7, 0.1), "val_acc": lambda step: 0.98 - 0.4 * math.exp(-step / 30),
        "season2024_loss": falling(0.7, far),
        "season2024_acc": lambda step: (0.64 if stated else 0.96) + 0.01 * float(NOISE[step]),
    }  # fmt: skip
    answer = diagnosed({"train_loss": falling(0.7, 0.099)}, evaluated, task="classification")
    assert ("held_out_sets_disagree" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "train_eval_leakage") is stated


@pytest.mark.parametrize(("settings", "norm", "lost", "leads"), [
    ({"noise_multiplier": 1.1, "per_device_train_batch_size": 4}, None, "at random", "healthy"),
    ({"poisson_sampling": True}, None, "at random", "healthy"), ({}, 1.0, "at random", "healthy"),
    ({"noise_multiplier": 1.1, "per_device_train_batch_size": 64}, None, "at random", "invalid_math"),
    ({"poisson_sampling": False}, None, "at random", "invalid_math"),
    ({}, math.nan, "at random", "invalid_math"), ({"poisson_sampling": True}, None, "each 25", "invalid_math"),
])  # fmt: skip
def test_a_loss_that_is_lost_in_single_batches_at_random_and_leaves_no_trace_is_that_of_empty_ones(
    settings: dict[str, Any], norm: float | None, lost: str, leads: str
) -> None:
    at = {step for step in range(1, 201) if (step % 25 == 0 if lost == "each 25" else NOISE[step + 400] > 1.7)}
    loss = falling(2.3, 0.6, 50)
    columns = {"loss": lambda step: math.nan if step in at else loss(step)}
    if norm is not None:
        columns["grad_norm"] = lambda step: norm if step in at else 1 + 0.1 * float(NOISE[step])
    answer = diagnosed(columns, {"eval_loss": falling(2.3, 0.62, 50)}, **settings)
    assert answer.hypotheses[0].cause == leads
    assert ("empty_batches" in facts(answer)) is (leads == "healthy")
    assert answer.hypotheses[0].probability < 0.8 or "lost_by_chance" not in facts(answer)


# Rows that come again after a resume, parts of a step that take ever longer, a policy that is off before any update.


ROWS = np.random.default_rng(4).permutation(8000)


def launched(style: str, replayed: bool) -> str:
    """Return a log of four launches of 60 steps each, in mid-pass: they read on, or begin with the same rows."""
    lines = []
    for step in range(240):
        if step and step % 60 == 0:
            lines.append(RESUMED[style].format(step=step))
        row = int(ROWS[(step % 60 if replayed else step) * 7])
        lines.append(ROW_LINES[style].format(step=step + 1, epoch=step / 900, loss=4 - step / 100, row=row))
    return "\n".join(lines) + "\n"


ROW_LINES = {
    "bracket": "step {step} ep {epoch:.3f} loss {loss:.4f} chunk[0]={row}",
    "list": "step {step} | epoch {epoch:.3f} | loss {loss:.4f} | ids [{row}, 4, 5]",
    "json": '{{"step": {step}, "epoch": {epoch:.3f}, "loss": {loss:.4f}, "first_idx": {row}}}',
}
RESUMED = {
    "bracket": "[launch] restored model+optim+lr from ckpt_{step:06d}",
    "list": "Resuming training from checkpoint-{step}",
    "json": '{{"event": "resume", "step": {step}}}',
}


@pytest.mark.parametrize("style", ROW_LINES)
@pytest.mark.parametrize("replayed", [True, False])
def test_rows_that_a_resume_begins_with_again_are_data_that_is_replayed(
    style: str, replayed: bool, tmp_path: Path
) -> None:
    log = tmp_path / ("train.jsonl" if style == "json" else "train.log")
    log.write_text(launched(style, replayed))
    answer = diagnose_run(log)
    assert ("rows_after_resume" in facts(answer)) is replayed
    assert (answer.hypotheses[0].cause == "resume_data_replayed") is replayed


def test_rows_that_come_again_with_each_pass_are_not_replayed() -> None:
    columns = {"loss": falling(3, 1), "epoch": lambda step: step / 50, "row": lambda step: float(ROWS[step % 50])}
    assert "rows_after_resume" not in facts(diagnosed(columns))


@pytest.mark.parametrize("name", ["t_hooks_ms", "callbacks_s", "logger time (ms)", "ema_update_sec"])
@pytest.mark.parametrize(("grows", "more", "stated"), [
    (20.0, {}, True), (1.0, {}, False), (20.0, {"tokens": lambda step: 100 + 10 * step}, False),
])  # fmt: skip
def test_a_part_of_the_step_that_takes_ever_longer_slows_the_run(
    name: str, grows: float, more: dict[str, Any], stated: bool
) -> None:
    columns = more | {
        "loss": falling(3, 1),
        "t_fwd_ms": lambda step: 0.2 + 0.02 * abs(float(NOISE[step])),
        name: lambda step: (
            0.02 * (1 + (grows - 1) * step / 200) * (1 + 0.1 * float(NOISE[-step])) + 9 * (step % 17 == 3)
        ),
    }
    answer = diagnosed(columns)
    assert ("time_grows" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "throughput_degradation") is stated


@pytest.mark.parametrize("name", ["elapsed_s", "wall_time", "t_total_s", "hooks_so_far_s"])
def test_a_clock_is_no_part_of_the_step_that_takes_ever_longer(name: str) -> None:
    columns = {"loss": falling(3, 1), "t_fwd_ms": still(0.2), name: lambda step: 0.5 * step}
    assert "time_grows" not in facts(diagnosed(columns))


@pytest.mark.parametrize(
    "name", ["first_mb_clipfrac", "clipfrac_mb0", "clip_frac/first_epoch", "clipfrac_before_update"]
)
@pytest.mark.parametrize(("level", "stale"), [(0.2, True), (0.001, False)])
def test_a_policy_that_is_clipped_before_any_update_is_not_the_one_that_sampled(
    name: str, level: float, stale: bool
) -> None:
    columns = POLICY | {
        "clipfrac": lambda step: 0.11 + 0.01 * float(NOISE[step]),
        name: lambda step: level * (1 + 0.1 * float(NOISE[-step])),
    }
    answer = diagnosed(columns, algorithm="ppo")
    assert ("moved_before_update" in facts(answer)) is stale
    assert (answer.hypotheses[0].cause == "off_policy_staleness") is stale


# What columns show whatever they are called: sums that hardly turn, states that begin anew, places of a pass, ranks.


def noisy(level: float, share: float, shift: int = 0) -> Any:
    return lambda step: level * (1 + share * float(NOISE[step + shift]))


@pytest.mark.parametrize("name", ["cos(g, g prev)", "grad_cosine_successive", "cosine of last two grads"])
@pytest.mark.parametrize(("cosine", "scatter", "stated"), [
    (0.9993, 0.05, True), (0.4, 0.05, False), (0.999, 0, False),
])  # fmt: skip
def test_gradients_of_fresh_rows_that_hardly_turn_are_a_sum(
    name: str, cosine: float, scatter: float, stated: bool
) -> None:
    answer = diagnosed({"loss": noisy(0.53, scatter), name: noisy(cosine, 1e-4, 300)})
    assert ("gradients_alike" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "missing_zero_grad") is stated


def test_an_average_of_gradients_may_hardly_turn() -> None:
    answer = diagnosed({"loss": noisy(0.53, 0.05), "cos(momentum grad, prev)": noisy(0.999, 1e-4)})
    assert "gradients_alike" not in facts(answer)


def climbing(step: int) -> float:
    return 0.33 * math.sqrt(1 - math.exp(-step / 60))


@pytest.mark.parametrize(("name", "size"), [("rms_hist", 1.0), ("denom p50", 3e-4), ("mean nu", 20.0)])
@pytest.mark.parametrize(("restored", "stated"), [(False, True), (True, False)])
def test_what_goes_after_a_resume_as_at_the_start_was_not_restored(
    name: str, size: float, restored: bool, stated: bool, tmp_path: Path
) -> None:
    log, resumed_at = tmp_path / "train.log", 121
    lines = [
        f"step {step} loss {falling(3.5, 1.3)(step):.4f} {name.replace(' ', '_')} "
        f"{size * climbing(step if step < resumed_at or restored else step - resumed_at + 1):.3e}"
        for step in range(1, 200)
    ]
    log.write_text("\n".join([*lines[:120], "Resuming from checkpoint-120", *lines[120:]]) + "\n")
    assert ("begins_anew_at_resume" in facts(diagnose_run(log))) is stated


@pytest.mark.parametrize(("name", "start"), [("loss", 0), ("tr_ce", 3), ("nll", 9)])
@pytest.mark.parametrize(("wide", "stated"), [(2, True), (9, False)])
def test_few_places_of_a_pass_that_are_far_above_the_others_hold_bad_rows(
    name: str, start: int, wide: int, stated: bool
) -> None:
    columns = {name: lambda step: noisy(0.4, 0.03)(step) + (4.0 if (step + start) % 20 < wide else 0.0)}
    assert ("few_places_of_period" in facts(diagnosed(columns))) is stated


@pytest.mark.parametrize(("still_name", "moving_name", "gradient"), [
    ("‖emb‖", "‖out‖", "∇emb"), ("||stem||", "||mixer||", "∇stem"), ("‖W_in‖", "‖W_out‖", "∇W_in"),
])  # fmt: skip
@pytest.mark.parametrize("moves", [0.0, 0.001])
def test_a_part_whose_norm_stands_between_bars_is_seen_to_stand_still(
    still_name: str, moving_name: str, gradient: str, moves: float
) -> None:
    columns = {
        "loss": falling(1.8, 0.5), still_name: lambda step: 168.8 + moves * step, moving_name: falling(3.3, 32.9),
        gradient: noisy(0.09, 0.05),
    }  # fmt: skip
    answer = diagnosed(columns, learning_rate=0.01, optim="adamw")
    assert any("stands_still" in fact for fact in facts(answer)) is (moves == 0)


@pytest.mark.parametrize(("total", "whole", "part"), [
    ("objective", "recon (sum sq)", "KL q|p"), ("loss", "rec", "kl"), ("train_loss", "bce_pix", "kld"),
])  # fmt: skip
@pytest.mark.parametrize("factor", [-0.05, 0.05])
def test_a_divergence_that_is_subtracted_is_seen_by_arithmetic(
    total: str, whole: str, part: str, factor: float
) -> None:
    def kl(step: int) -> float:
        return round(46 * (1 - math.exp(-step / 20)) + float(NOISE[step]) ** 2, 3)

    def rest(step: int) -> float:
        return round(60 + 40 * math.exp(-step / 15) + float(NOISE[-step]), 3)

    columns = {total: lambda step: round(rest(step) + factor * kl(step), 3), whole: rest, part: kl}
    assert any(fact.endswith("_subtracted") for fact in facts(diagnosed(columns))) is (factor < 0)


@pytest.mark.parametrize("names", [("reg", "loss"), ("l2_term", "ce"), ("weight penalty", "data loss")])
@pytest.mark.parametrize(("rest", "shrinks", "stated"), [(0.74, 0.05, True), (0.1, 0.05, False), (1.5, 0.9, False)])
def test_a_penalty_that_falls_first_and_rests_above_the_data_holds_the_weights(
    names: tuple[str, str], rest: float, shrinks: float, stated: bool
) -> None:
    def penalty(step: int) -> float:
        return 2.2 if step == 1 else 2.2 * shrinks if step < 5 else rest + 0.02 * float(NOISE[step])

    answer = diagnosed({names[1]: falling(2.1, 0.4, 20), names[0]: penalty})
    assert ("penalty_rules" in facts(answer)) is stated


@pytest.mark.parametrize("name", ["v over cells", "critic_mse", "vf/mean"])
@pytest.mark.parametrize(("rate", "stated"), [(0.1, True), (0.004, False)])
def test_values_that_run_off_beyond_all_returns_are_no_returns(name: str, rate: float, stated: bool) -> None:
    power = 2 if "mse" in name else 1
    columns = POLICY | {name: lambda step: 2 * math.exp(rate * power * step)}
    assert ("values_run_off" in facts(diagnosed(columns, algorithm="ppo"))) is stated


@pytest.mark.parametrize("names", [("hq", "web", "batch3"), ("src_a", "src_b", "vendor"), ("en", "de", "fr")])
@pytest.mark.parametrize(("low", "stated"), [(None, True), (0.5, False)])
def test_a_source_that_has_what_the_others_lack_is_labelled_the_other_way_round(
    names: tuple[str, str, str], low: float | None, stated: bool
) -> None:
    def right(step: int) -> float:
        return 0.86 - 0.3 * math.exp(-step / 20)

    columns: dict[str, Any] = {
        "loss": falling(0.69, 0.6), names[0]: right, names[1]: lambda step: right(step) + 0.005 * float(NOISE[step]),
        names[2]: lambda step: (1 - right(step)) if low is None else low + 0.01 * float(NOISE[step]),
    }  # fmt: skip
    assert ("source_mirrored" in facts(diagnosed(columns))) is stated


@pytest.mark.parametrize("name", ["at", "rank", "on gpu"])
@pytest.mark.parametrize(("place", "stated"), [(lambda _: 5, True), (lambda step: step % 8, False)])
def test_events_that_are_all_at_one_of_many_ranks_are_of_the_machine(name: str, place: Any, stated: bool) -> None:
    records: list[dict[str, float]] = []
    for step in range(1, 200):
        if step % 10 == 0:
            records.append({"step": step, "loss": falling(2.0, 0.5)(step)})
        elif step % 23 == 0:
            records.append({"step": step, name: place(step), "grad_norm": 300.0})
    assert ("events_at_one_rank" in facts(diagnose_run(records, settings={"world_size": 8}))) is stated


@pytest.mark.parametrize("name", ["hist.absmax", "input_max", "x abs max"])
@pytest.mark.parametrize(("extreme", "loss", "stated"), [(175.0, 4.0, True), (4.0, 4.0, False), (175.0, 0.0, False)])
def test_an_input_far_off_in_one_record_where_the_loss_is_too_is_a_bad_batch(
    name: str, extreme: float, loss: float, stated: bool
) -> None:
    columns = {
        "loss": lambda step: noisy(0.5, 0.02)(step) + (loss if step == 90 else 0),
        name: lambda step: extreme if step == 90 else 2.8,
    }
    assert ("input_far_off" in facts(diagnosed(columns))) is stated


# Columns of lists and groups: one rank, one piece of the data or one part of a model that stands out.


GROUPS_AT_ONCE = {
    "lists": "{step} nll {loss}\n   {word} nll [{values}]\n",
    "one line": "epoch {step} | loss {loss} | {word}_loss [{values}]\n",
}


@pytest.mark.parametrize("style", ["lists", "one line"])
@pytest.mark.parametrize(("word", "level", "stated"), [
    ("chunk", 5.5, True), ("shard", 5.5, True), ("chunk", 2.4, False), ("class", 5.5, False), ("layer", 5.5, False),
])  # fmt: skip
def test_a_piece_of_the_data_that_stays_above_all_others_is_a_bad_one(
    style: str, word: str, level: float, stated: bool, tmp_path: Path
) -> None:
    lines = []
    for at in range(1, 9):
        values = [round(2 + 2 / at + 0.05 * float(NOISE[9 * at + place]), 3) for place in range(12)]
        values[7] = level + 0.1 / at
        form = GROUPS_AT_ONCE[style].format(step=at, loss=2 + 2 / at, word=word, values=", ".join(map(str, values)))
        lines.append(f"epoch {form}" if style == "lists" else form)
    (tmp_path / "train.log").write_text("".join(lines))
    answer = diagnose_run(tmp_path / "train.log")
    assert ("piece_stands_out" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "bad_data_pocket") is stated


@pytest.mark.parametrize("form", ["norm by rank [{0}]", "grad_norm per gpu: {0}", "local gnorm [{0}]"])
@pytest.mark.parametrize(("bad", "times", "stated"), [((3,), 1e30, True), ((3, 1), 1e30, False), ((3,), 20.0, False)])
def test_a_rank_whose_gradient_is_huge_now_and_then_is_broken(
    form: str, bad: tuple[int, ...], times: float, stated: bool, tmp_path: Path
) -> None:
    lines = []
    for at in range(1, 61):
        norms = [1 + 0.2 * abs(float(NOISE[5 * at + rank])) for rank in range(5)]
        if at % 9 == 0:
            norms[bad[at // 9 % len(bad)]] *= times
        lines.append(f"step {at} loss {2 + 2 / at:.3f}\n   {form.format(', '.join(f'{norm:.4g}' for norm in norms))}\n")
    (tmp_path / "train.log").write_text("".join(lines))
    answer = diagnose_run(tmp_path / "train.log")
    assert (answer.hypotheses[0].cause == "hardware_fault") is stated


@pytest.mark.parametrize(("head", "part"), [("step/lr rms", "emb"), ("update", "h.0"), ("upd_norm", "head")])
@pytest.mark.parametrize(("times", "all_parts", "stated"), [(900, False, True), (900, True, False), (4, False, False)])
def test_the_update_of_one_part_that_jumps_is_of_an_optimizer_that_lags(
    head: str, part: str, times: float, all_parts: bool, stated: bool
) -> None:
    def size(grows: float) -> Any:
        return lambda step: (1 + 0.1 * abs(float(NOISE[step]))) * (grows if 120 <= step < 130 else 1)

    others = {f"{head}/{name}": size(times if all_parts else 1) for name in ("ln", "attn", "mlp")}
    columns = {"loss": falling(3, 1), f"{head}/{part}": size(times), **others}
    assert ("update_of_a_part_jumps" in facts(diagnosed(columns))) is stated


@pytest.mark.parametrize(("size", "slope"), [("size", "grad"), ("norm", "g"), ("weights", "gradient")])
@pytest.mark.parametrize(("gradient", "value", "stated"), [
    (0.4, 0.0, True), (0.4, 8.4819, True), (0.0, 8.4819, False), (0.4, 8.0, False),
])  # fmt: skip
def test_a_part_with_a_gradient_that_keeps_its_size_is_left_out_of_updates(
    size: str, slope: str, gradient: float, value: float, stated: bool
) -> None:
    columns = {
        "loss": falling(3, 2.5),
        f"{slope}/B": lambda step: gradient * (1 + 0.1 * float(NOISE[step]) / 5),
        f"{slope}/C": lambda step: 0.2 + 0.01 * float(NOISE[step]),
        f"{size}/B": still(value),
        f"{size}/C": lambda step: 18 - step / 400,
    }
    assert ("part_stands_still_with_gradient" in facts(diagnosed(columns))) is stated


@pytest.mark.parametrize(("left", "gain", "stated"), [(0.2, 1.1, True), (0.8, 1.1, False), (0.2, 0.2, False)])
def test_parts_that_shrink_while_others_do_not_are_decayed_too_much(left: float, gain: float, stated: bool) -> None:
    def norm(start: float, end: float) -> Any:
        return lambda step: start * (end + (1 - end) * math.exp(-step / 20))

    columns = {"loss": falling(4, 3), "weight_norm/ln": norm(15, gain)}
    columns |= {f"weight_norm/{part}": norm(3, left) for part in ("emb", "attn", "mlp")}
    assert ("parts_shrink_apart" in facts(diagnosed(columns))) is stated


@pytest.mark.parametrize(
    "names", [("ratio/min", "ratio/max"), ("is_ratio_min", "is_ratio_max"), ("rho/min", "rho/max")]
)
@pytest.mark.parametrize(("since", "far", "stated"), [(60, 0.5, True), (0, 0.5, False), (60, 0.01, False)])
def test_ratios_that_leave_one_for_good_are_of_samples_of_an_older_policy(
    names: tuple[str, str], since: int, far: float, stated: bool
) -> None:
    def end(sign: int) -> Any:
        return lambda step: 1 + sign * (far + 0.01 * abs(float(NOISE[step]))) * (step > since)

    columns = POLICY | {names[0]: end(-1), names[1]: end(1)}
    assert ("ratio_leaves_one" in facts(diagnosed(columns, algorithm="grpo"))) is stated


@pytest.mark.parametrize(("crowd", "swapped"), [(0.12, True), (0.45, False), (0.75, False)])
def test_pairs_of_one_source_that_mirror_the_others_are_labelled_the_other_way(
    crowd: float, swapped: bool, tmp_path: Path
) -> None:
    lines = []
    for at in range(1, 11):
        end, gap = 0.85 - 0.3 / at, (crowd - 0.5) * 2
        lines.append(f"{20 * at}: loss {0.69 - 0.02 * at:.3f} acc {0.6 + 0.02 * at:.3f} gap {0.1 * at:.2f}\n")
        lines.append(
            f'   dev [acc, gap] {{"qa": [{end:.3f}, 0.6], "web": [{end:.3f}, 0.7], "crowd": [{crowd}, {gap}]}}\n'
        )
    (tmp_path / "rm.log").write_text("".join(lines))
    assert (diagnose_run(tmp_path / "rm.log").hypotheses[0].cause == "preference_labels_swapped") is swapped


@pytest.mark.parametrize(("grows", "slow"), [(0.4, True), (0.0, False)])
def test_a_part_of_means_that_grows_with_the_pace_slows_the_run(grows: float, slow: bool, tmp_path: Path) -> None:
    lines = ["ms per step: get/fwd/bwd/book\n"]
    for at in range(1, 21):
        parts = (0.1, 1.9, 3.0, 0.3 + grows * at)
        shown = "/".join(f"{part:.2f}" for part in parts)
        lines.append(f"step {20 * at} loss {2 + 1 / at:.3f}  {shown} ms  tok/cpu-s {390000 / sum(parts):.0f}\n")
    (tmp_path / "timing.log").write_text("".join(lines))
    answer = diagnose_run(tmp_path / "timing.log")
    assert (answer.hypotheses[0].cause == "throughput_degradation") is slow


@pytest.mark.parametrize(("name", "off", "stated"), [
    ("val_export_check_same_rows", 0.97, True), ("val_standalone_same_data", 1.05, True),
    ("val_probe_same_rows", 1.0, False), ("val_ema_same_rows", 0.97, False), ("val_other_rows", 0.97, False),
])  # fmt: skip
def test_the_same_rows_measured_by_something_else_are_a_second_evaluation(name: str, off: float, stated: bool) -> None:
    evaluated = {"val_loss": falling(0.7, 0.3), name: lambda step: off * falling(0.7, 0.3)(step)}
    answer = diagnosed({"loss": falling(0.7, 0.299)}, evaluated)
    assert ("evaluated_twice" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "eval_mode_bug") is stated


@pytest.mark.parametrize(("first", "end", "stated"), [(1.0, 1.3, True), (1.8, 1.9, False), (1.0, 0.2, False)])
def test_sets_that_were_alike_and_part_are_not_of_two_kinds(first: float, end: float, stated: bool) -> None:
    fresh = lambda step: first + (end - first) * step / 120  # noqa: E731
    evaluated = {"val_loss": falling(1.3, 0.1, 40), "fresh_loss": fresh}
    answer = diagnosed({"train_loss": falling(1.3, 0.15, 40)}, evaluated)
    assert ("alike_sets_part" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "train_eval_leakage") is stated or not stated


@pytest.mark.parametrize(("raw", "used", "most", "stated"), [
    ("raw g", "used g", 0.02, True), ("gn before", "gn after", 0.03, True),
    ("grad pre clip", "grad post clip", 0.02, True),
    ("raw g", "used g", 1.5, False),
])  # fmt: skip
def test_what_clipping_leaves_is_the_bound_where_both_norms_are_logged(
    raw: str, used: str, most: float, stated: bool
) -> None:
    def norm(step: int) -> float:
        return 0.8 * (1 + 0.3 * float(NOISE[step])) + 0.5

    columns = {"train_loss": falling(4.2, 2.6, 50), raw: norm, used: lambda step: min(norm(step), most)}
    answer = diagnosed(columns, optim="sgd", learning_rate=0.1)
    assert ("steps_of_one_length" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "clip_too_tight") is stated
    assert "steps_of_one_length" not in facts(diagnosed(columns, optim="adamw", learning_rate=0.1))


def by_step(columns: dict[str, Any], first: int, last: int, every: int = 1) -> RunDiagnosis:
    return diagnose_run([
        {"step": step} | {name: value(step) for name, value in columns.items()}
        for step in range(first, last + 1, every)
    ])  # fmt: skip


@pytest.mark.parametrize(("zeros", "stated"), [(3, "batches_of_one_row"), (1, "last_batch_of_one_row"), (0, "")])
def test_losses_of_exactly_zero_at_the_end_of_each_pass_are_of_batches_with_nothing_to_compare(
    zeros: int, stated: str
) -> None:
    length = 8 if zeros != 1 else 16

    def of_pass(value: Any) -> Any:
        return lambda step: 0.0 if zeros and (step - 1) % length >= length - zeros else value(step)

    columns: dict[str, Any] = {
        "loss": of_pass(falling(3.0, 1.0, 40)),
        "grad_norm": of_pass(lambda step: 0.9 + 0.1 * float(NOISE[step])),
        "epoch": lambda step: round(step / length, 3),
    }
    answer = by_step(columns, 1, 10 * length)
    assert [fact for fact in facts(answer) if fact.endswith("_of_one_row")] == [stated] * bool(stated)
    assert not {"one_jump_a_pass", "recurs_with_period"} & {*facts(answer)}
    assert answer.hypotheses[0].cause == ("batch_too_small" if zeros == 3 else "healthy")
    if stated:
        assert f"in {10 * zeros} of {10 * length} records" in facts(answer)[stated]


def test_zeros_in_the_midst_of_passes_are_no_last_batches() -> None:
    columns: dict[str, Any] = {
        "loss": lambda step: 0.0 if step % 8 == 3 else falling(3.0, 1.0, 40)(step),
        "epoch": lambda step: round(step / 8, 3),
    }
    assert not any(fact.endswith("_of_one_row") for fact in facts(by_step(columns, 1, 80)))


@pytest.mark.parametrize(("rate", "stated", "cause"), [
    (1e-6, "start_thrown_away_at_low_rate", "bad_init"), (1e-2, "start_thrown_away", "lr_too_high"),
])  # fmt: skip
def test_a_loss_that_is_best_in_its_very_first_record_is_a_start_that_was_thrown_away(
    rate: float, stated: str, cause: str
) -> None:
    columns: dict[str, Any] = {
        "loss": lambda step: 0.0132 if step == 0 else 5.92 + 0.02 * float(NOISE[step]), "lr": still(rate),
    }  # fmt: skip
    answer = by_step(columns, 0, 59)
    assert "0.0132 in its first record" in facts(answer)[stated]
    assert answer.hypotheses[0].cause == cause
    assert "loss_plateau" not in {finding.symptom for finding in answer.findings if finding.state == "present"}


def test_a_score_that_is_best_in_its_very_first_record_is_of_such_a_start_too() -> None:
    answer = by_step({"val_acc": lambda step: 0.92 if step == 0 else 0.1 + 0.002 * float(NOISE[step])}, 0, 19)
    assert "val_acc is 0.92 in its first record" in facts(answer)["start_thrown_away"]
    assert answer.hypotheses[0].cause != "healthy"


@pytest.mark.parametrize("loss", [
    lambda step: 0.0 if step == 0 else 5.92 + 0.02 * float(NOISE[step]),  # not measured before training
    lambda step: 2.5 if step == 0 else 5.92 * math.exp(-step / 20) + 0.01,  # comes back
    lambda step: 2.5 * (1 + step / 2),  # climbs away
])  # fmt: skip
def test_a_first_loss_that_is_not_measured_or_comes_back_or_is_left_slowly_is_no_lost_start(loss: Any) -> None:
    assert not any(fact.startswith("start_thrown_away") for fact in facts(by_step({"loss": loss}, 0, 59)))


def test_a_first_loss_of_one_step_before_sums_over_ten_is_no_lost_start() -> None:
    summed = {"loss": lambda step: (1 if step == 1 else 10) * (2.0 + 0.05 * float(NOISE[step]))}
    records = [{"step": step, "loss": summed["loss"](step)} for step in (1, *range(10, 400, 10))]
    assert not any(fact.startswith("start_thrown_away") for fact in facts(diagnose_run(records)))


def evaluated_as(evaluation: Any) -> RunDiagnosis:
    training = {"train_loss": lambda step: 2 * 0.995**step + 0.1 + 0.006 * float(NOISE[step])}
    return by_step({**training, "val_loss": evaluation}, 20, 980, 20)


@pytest.mark.parametrize(("evaluation", "stated", "cause"), [
    (lambda step: (2.3 if step < 400 else max(0.12, 2.3 * 0.99 ** (step - 400))) + 0.006 * float(NOISE[-step]),
     "evaluation_follows_late", "eval_mode_bug"),
    (lambda step: 2.3 + 0.006 * float(NOISE[-step]), "evaluation_stands_still", None),
    (still(2.3026), "evaluation_loss_frozen", "metric_bug"),
    (lambda step: 2 * 0.995**step + 0.15 + 0.006 * float(NOISE[-step]), "", "healthy"),
    (lambda step: 2.3 + 0.0008 * step, "", "overfitting"),
])  # fmt: skip
def test_an_evaluation_that_does_not_move_while_training_learns_is_not_healthy(
    evaluation: Any, stated: str, cause: str | None
) -> None:
    answer = evaluated_as(evaluation)
    assert [fact for fact in facts(answer) if fact.startswith("evaluation_")] == [stated] * bool(stated)
    leader = answer.hypotheses[0].cause
    assert leader == cause if cause is not None else leader != "healthy"


@pytest.mark.parametrize(("names", "shown"), [
    (("train_loss", "valid_loss"), False), (("loss", "val_loss"), True),
])  # fmt: skip
def test_an_evaluation_below_the_running_mean_of_fastai_is_no_gap(names: tuple[str, str], shown: bool) -> None:
    records, mean = [], 0.0
    for epoch in range(20):
        loss = 6.5 * 0.65**epoch + 0.05
        mean = 0.98 * mean + 0.02 * loss
        values = (mean / (1 - 0.98 ** (epoch + 1)), 0.65 * loss + 0.02)
        records.append({"epoch": epoch, **dict(zip(names, values, strict=True))})
    answer = diagnose_run(records)
    assert ("eval_below_train" in {each.symptom for each in answer.findings if each.state == "present"}) is shown
    lines = " ".join(line for line in map(str, answer.sheet))
    assert ("training is a running mean, which lags behind" in lines) is not shown


def test_nor_is_one_before_sums_that_fall_by_half() -> None:
    records = [{"step": step, "loss": 0.25 if step == 0 else 4.8 * 0.996**step} for step in range(0, 220, 20)]
    assert not any(fact.startswith("start_thrown_away") for fact in facts(diagnose_run(records)))
