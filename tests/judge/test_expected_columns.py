"""A column that is off what a healthy run holds is stated with what is expected; within it, nothing is stated."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mldebug_mcp import RunDiagnosis, diagnose_run

Curve = NDArray[np.float64]
STEPS: Curve = np.arange(1.0, 121.0)
SHARE = STEPS / STEPS[-1]
NOISE = np.random.default_rng(5).normal(0, 1, (6, len(STEPS)))
LOSS = 3.3 + 5.9 * np.exp(-8 * SHARE) + 0.03 * NOISE[0]
LEARNS: Mapping[str, Curve] = {
    "loss": LOSS, "grad_norm": 0.6 + 0.8 * np.exp(-10 * SHARE) + 0.06 * NOISE[1],
    "learning_rate": 3e-4 * (1 - 0.9 * SHARE),
}  # fmt: skip
GROUPS: Mapping[str, Curve] = {
    "reward": 0.75 - 0.55 * np.exp(-3 * SHARE) + 0.02 * NOISE[0], "reward_std": 0.35 - 0.1 * SHARE + 0.02 * NOISE[1],
    "kl": 0.02 * SHARE + 0.001 * np.abs(NOISE[2]), "completion_length": 220 + 20 * SHARE + 6 * NOISE[3],
    "loss": 0.004 * NOISE[4], "grad_norm": 0.3 + 0.04 * NOISE[5],
}  # fmt: skip
AGENT: Mapping[str, Curve] = {
    "episode_return": 180 - 170 * np.exp(-3 * SHARE) + 6 * NOISE[0], "epsilon": np.maximum(0.05, 1 - 2 * SHARE),
    "loss": 0.2 + 0.3 * np.exp(-2 * SHARE) + 0.03 * np.abs(NOISE[1]),
}  # fmt: skip
OFTEN = np.floor(STEPS / 2)


def diagnosed(
    curves: Mapping[str, Curve | float], evaluated: Mapping[str, Sequence[float] | Curve] | None = None, **settings: Any
) -> RunDiagnosis:
    """Diagnose curves of one value for each step, with evaluations each tenth step."""
    columns = {name: np.broadcast_to(curve, STEPS.shape) for name, curve in curves.items()}
    records = [{"step": step} | {name: float(curve[at]) for name, curve in columns.items()}
               for at, step in enumerate(STEPS.tolist())]  # fmt: skip
    for at, record in enumerate(records[9::10]):
        record |= {name: float(values[at]) for name, values in (evaluated or {}).items()}
    return diagnose_run(records, settings=settings or None)


def facts(answer: RunDiagnosis) -> set[str]:
    return {fact.fact for fact in answer.sheet.facts}


@pytest.mark.parametrize(("name", "off", "usual", "fact", "cause"), [
    ("data_wait_frac", 0.78 + 0.02 * NOISE[2], 0.02, "waits_for_data", "dataloader_bottleneck"),
    ("loader_wait_pct", 71 + NOISE[2], 3.0, "waits_for_data", "dataloader_bottleneck"),
    ("prefetch_queue_depth", 0.0, 7.0, "loader_queue_empty", "dataloader_bottleneck"),
    ("gpu_util_pct", 9 + NOISE[2], 96.0, "device_idle", "dataloader_bottleneck"),
    ("clip_coef", 0.004, 1 - 0.02 * np.abs(NOISE[2]), "clip_leaves_little", "clip_too_tight"),
    ("update_to_weight_ratio", 0.06 * np.exp(0.1 * NOISE[2]), 1e-3, "update_ratio_large", "lr_too_high"),
    ("update_cos", -0.93 + 0.02 * NOISE[2], 0.1, "updates_turn_back", "lr_too_high"),
    ("weight_norm", 100 * np.exp(4 * SHARE), 100 + 10 * SHARE, "weight_norm_grows", "lr_too_high"),
    ("attn_entropy", np.maximum(3.5 - 8 * SHARE, 0.01), 3.5 - SHARE, "attention_entropy_gone", "logit_drift"),
    ("logit_scale", 14 * np.exp(4 * SHARE), 14 + 60 * SHARE, "logit_scale_beyond", "logit_drift"),
    ("temperature", 0.07 * np.exp(-5 * SHARE), 0.07 - 0.05 * SHARE, "temperature_gone", "logit_drift"),
    ("dup_frac", 0.64 + 0.01 * NOISE[2], 0.002, "rows_are_copies", "duplicated_data"),
    ("pad_frac", 0.93, 0.2, "padding_mostly", None),
    ("supervised_frac", 4e-4, 0.4, "hardly_any_target", "all_labels_masked"),
    ("codebook_usage", 0.2 * np.exp(-8 * SHARE), 0.2 + 0.7 * SHARE, "codebook_unused", "representation_collapse"),
    ("codebook_perplexity", 1 + 60 * np.exp(-8 * SHARE), 60 + 200 * SHARE, "codebook_perplexity_gone",
     "representation_collapse"),
    ("sample_diversity", 0.8 * np.exp(-6 * SHARE), 0.8 - 0.1 * SHARE, "samples_alike", "adversarial_imbalance"),
    ("num_alloc_retries", OFTEN, 0.0, "allocator_retries", "fragmentation"),
    ("ecc_errors", OFTEN, 0.0, "device_errors", "hardware_fault"),
    ("num_nonfinite_grads", 30 + np.round(5 * np.abs(NOISE[2])), (STEPS == 2) * 8.0, "gradients_not_finite",
     "fp16_overflow"),
    ("skipped_steps", OFTEN, np.floor(3 * SHARE), "steps_skipped", "fp16_overflow"),
])  # fmt: skip
def test_a_column_off_its_usual_level_is_stated_and_speaks_for_a_cause(
    name: str, off: Curve | float, usual: Curve | float, fact: str, cause: str | None
) -> None:
    seen, twin = diagnosed({**LEARNS, name: off}), diagnosed({**LEARNS, name: usual})
    assert fact in facts(seen)
    assert cause is None or cause in {each.cause for each in seen.hypotheses}
    assert cause is None or seen.hypotheses[0].cause != "healthy" or seen.hypotheses[0].probability < 0.7
    assert fact not in facts(twin)
    assert twin.hypotheses[0].cause == "healthy"


@pytest.mark.parametrize(("name", "off", "usual", "fact", "cause"), [
    ("rep_4gram", 0.03 + 0.93 * SHARE, 0.03, "text_repeats", "entropy_collapse"),
    ("ratio_max", 1 + 900 * SHARE, 1.3, "ratio_far_off", "off_policy_staleness"),
    ("sampling_logp_diff_mean", 0.004 + 0.9 * SHARE, 0.004, "sampler_differs", "off_policy_staleness"),
    ("ess_frac", np.maximum(0.9 - 1.2 * SHARE, 0.01), 0.92, "samples_hardly_count", "off_policy_staleness"),
    ("advantage_std", 1e-5, 0.9, "advantages_without_spread", "no_reward_variance"),
    ("gold_reward", 0.35 - 0.25 * SHARE, 0.35 + 0.3 * SHARE, "true_reward_falls", "reward_hacking"),
])  # fmt: skip
def test_so_is_one_of_a_policy(name: str, off: Curve | float, usual: Curve | float, fact: str, cause: str) -> None:
    seen, twin = diagnosed({**GROUPS, name: off}), diagnosed({**GROUPS, name: usual})
    assert fact in facts(seen)
    assert cause in {each.cause for each in seen.hypotheses[:3]}
    assert fact not in facts(twin)
    assert twin.hypotheses[0].cause == "healthy"


def test_shares_above_one_without_per_cent_in_the_name_are_no_shares() -> None:
    assert "waits_for_data" not in facts(diagnosed({**LEARNS, "data_wait_rate": 71.0}))


def test_values_beyond_every_return_are_no_values_of_it() -> None:
    assert "values_above_returns" in facts(diagnosed({**AGENT, "q_mean": 900 * SHARE}))
    assert "values_above_returns" not in facts(diagnosed({**AGENT, "q_mean": 120 * SHARE}))


def test_a_policy_whose_updates_leave_no_trace_does_not_train() -> None:
    still = {**AGENT, "ep_rew_mean": 20 + 3 * NOISE[0], "entropy": 1.38, "learning_rate": 3e-4}
    del still["episode_return"]
    seen = diagnosed({**still, "approx_kl": 0.0, "clip_fraction": 0.0})
    assert "policy_never_moves" in facts(seen)
    assert "params_not_training" in {each.cause for each in seen.hypotheses[:3]}
    assert "policy_never_moves" not in facts(diagnosed({**still, "approx_kl": 0.01, "clip_fraction": 0.0}))


@pytest.mark.parametrize(("other", "stated"), [("predicted_std", True), ("embedding_std", False)])
def test_answers_without_the_spread_of_their_targets_are_one_answer(other: str, stated: bool) -> None:
    seen = diagnosed({**LEARNS, other: 0.004, "target_std": 1.0})
    assert ("predictions_without_spread" in facts(seen)) is stated


def test_no_row_gets_the_label_that_a_tenth_of_them_has() -> None:
    assert "predictions_without_label" in facts(diagnosed({**LEARNS, "pred_pos_frac": 0.0, "label_pos_frac": 0.11}))
    assert "predictions_without_label" not in facts(
        diagnosed({**LEARNS, "pred_pos_frac": 0.09, "label_pos_frac": 0.11})
    )


def test_a_part_without_any_gradient_is_named_unless_it_is_frozen_on_purpose() -> None:
    norms = {**LEARNS, "grad_norm/backbone": 0.0, "grad_norm/head": 0.6 + 0.02 * NOISE[2]}
    seen = diagnosed(norms)
    assert "part_without_gradient" in facts(seen)
    assert "params_not_training" in {each.cause for each in seen.hypotheses[:2]}
    assert "part_without_gradient" not in facts(diagnosed(norms, freeze_backbone=True))


@pytest.mark.parametrize(("ratio", "fact"), [(0.12, "layers_shrink"), (8.0, "layers_grow"), (0.9, None)])
def test_activations_that_shrink_from_layer_to_layer_are_stated(ratio: float, fact: str | None) -> None:
    seen = diagnosed({**LEARNS} | {f"act_std/layer{layer}": ratio**layer for layer in range(5)})
    assert {"layers_shrink", "layers_grow"} & facts(seen) == ({fact} if fact else set())


@pytest.mark.parametrize(("name", "scores", "stated"), [
    ("val_cer", np.linspace(0.3, 2.2, 12), True), ("val_cer", np.linspace(0.9, 0.2, 12), False),
    ("val_ndcg@10", np.linspace(0.4, 0.05, 12), True), ("fid", np.linspace(90, 160, 12), True),
    ("fid", np.linspace(160, 30, 12), False),
])  # fmt: skip
def test_a_score_that_worsens_while_the_losses_fall_is_no_score_of_what_is_learnt(
    name: str, scores: Curve, stated: bool
) -> None:
    seen = diagnosed(LEARNS, evaluated={name: scores, "eval_loss": LOSS[9::10] + 0.05})
    assert ("score_worsens" in facts(seen)) is stated
    assert (seen.hypotheses[0].cause == "healthy") is not stated


def test_of_scores_that_worsen_together_the_same_one_is_named_each_time() -> None:
    worse = np.linspace(0.3, 2.2, 12)
    seen = diagnosed(LEARNS, evaluated={"val_rmse": worse + 0.1, "val_mae": worse, "eval_loss": LOSS[9::10] + 0.05})
    assert [fact.text.split()[0] for fact in seen.sheet.facts if fact.fact == "score_worsens"] == ["val_mae"]


def test_two_held_out_sets_with_scores_far_apart_are_of_two_kinds() -> None:
    good = np.linspace(0.4, 0.88, 12)
    apart = diagnosed(LEARNS, evaluated={"val_acc": good, "test_acc": np.linspace(0.3, 0.33, 12)})
    assert "sets_score_apart" in facts(apart)
    assert "sets_score_apart" not in facts(diagnosed(LEARNS, evaluated={"val_acc": good, "test_acc": good - 0.02}))


def test_one_source_of_the_loss_of_which_nothing_is_learnt_is_named() -> None:
    falls = {**LEARNS, "loss/web": LOSS, "loss/books": LOSS + 0.1}
    assert "part_never_learns" in facts(diagnosed({**falls, "loss/code": 9.1 + 0.03 * NOISE[2]}))
    assert "part_never_learns" not in facts(diagnosed({**falls, "loss/aux": 0.02 + 1e-4 * NOISE[2]}))


def test_a_component_of_a_reward_that_is_never_earned_is_named() -> None:
    shown = {**GROUPS, "rewards/format": np.minimum(1, 0.3 + SHARE)}
    assert "component_never_earned" in facts(diagnosed({**shown, "rewards/accuracy": 0.0}))
    assert "component_never_earned" not in facts(diagnosed({**shown, "rewards/accuracy": 0.5 * SHARE}))


def test_a_policy_that_earns_more_moves_whatever_its_divergence_shows() -> None:
    earns: dict[str, Curve | float] = {
        **AGENT,
        "ep_rew_mean": AGENT["episode_return"],
        "approx_kl": 0.0,
        "clip_fraction": 0.0,
        "entropy": 1.3,
    }
    assert "policy_never_moves" not in facts(diagnosed(earns))


@pytest.mark.parametrize(("setting", "value", "cause"), [
    ("adam_epsilon", 1.0, "lr_too_low"), ("label_smoothing", 0.9, "wrong_loss"),
    ("dropout", 0.9, "too_little_capacity"),
])  # fmt: skip
def test_a_setting_far_from_what_is_usual_raises_the_cause_that_it_may_be(
    setting: str, value: float, cause: str
) -> None:
    slow = {**LEARNS, "loss": 6.8 + 2.4 * np.exp(-3 * SHARE) + 0.03 * NOISE[0]}
    odd_settings: dict[str, Any] = {setting: value}
    plain, odd = (
        {each.cause: each.probability for each in diagnosed(slow, optimizer="adamw", **settings).hypotheses}
        for settings in ({}, odd_settings)
    )
    assert odd[cause] > 2 * plain.get(cause, 0.0)


@pytest.mark.parametrize(("name", "off", "fires", "stated"), [
    ("act_mean", 0.0, 0.4, True), ("alive_frac", 0.0, 0.5, True), ("nonzero", 0.2, 0.5, False),
    ("dead_frac", 0.0, 0.1, False), ("feature_importance", 0.0, 0.3, False),
])  # fmt: skip
def test_a_layer_that_gives_nothing_for_any_row_is_dead(name: str, off: float, fires: float, stated: bool) -> None:
    seen = diagnosed({"loss": 1.79 + 0.01 * NOISE[0], f"{name}/0": fires + 0.01 * NOISE[1], f"{name}/1": off})
    assert ("layer_gives_nothing" in facts(seen)) is stated
    assert (seen.hypotheses[0].cause == "dead_units") is stated


def test_a_list_of_numbers_by_layer_is_read_from_each_record(tmp_path: Path) -> None:
    rows = [{"step": at, "loss": 2 / at, "act_mean": [0.4, 0.0], "grad_norm": [0.1, 0.2]} for at in range(1, 20)]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert "layer_gives_nothing" in facts(diagnose_run(tmp_path / "log.jsonl"))


@pytest.mark.parametrize(("held", "loss", "stated"), [(-0.2, 0.05, True), (0.8, 0.05, False), (-0.2, 0.3, False)])
def test_an_evaluation_better_by_its_loss_and_worse_by_its_score_has_other_rows(
    held: float, loss: float, stated: bool
) -> None:
    ours = {"fit": 0.9 - 0.5 * np.exp(-9 * SHARE), "loss": 0.14 + 0.1 * np.exp(-9 * SHARE)}
    seen = diagnosed(ours, {"held": [held + 0.01 * at for at in range(12)], "val_loss": [loss] * 12})
    assert ("sides_disagree" in facts(seen)) is stated
    assert not stated or seen.hypotheses[0].cause == "train_eval_mismatch"


@pytest.mark.parametrize(("train", "stated"), [(360, True), (20, False)])
def test_more_patients_on_both_sides_than_there_are_leak(train: int, stated: bool, tmp_path: Path) -> None:
    lines = [f"rows 5,040, patients 360 | train 4,000 rows / {train} patients | val 1,040 rows / 340 patients"]
    lines += [f"epoch {at}: loss {0.7 - 0.03 * at:.3f} val_loss {0.7 - 0.025 * at:.3f} val_auc {0.7 + 0.015 * at:.3f}"
              for at in range(15)]  # fmt: skip
    (tmp_path / "train.log").write_text("\n".join(lines), encoding="utf-8")
    seen = diagnose_run(tmp_path / "train.log")
    assert ("groups_shared" in facts(seen)) is stated
    assert (seen.hypotheses[0].cause == "train_eval_leakage") is stated


@pytest.mark.parametrize(("target", "ends", "stated"), [("eps", 0.9, True), ("eps", 0.05, False), ("x0", 0.9, False)])
def test_noise_that_is_harder_to_foresee_where_there_is_more_of_it_is_another_target(
    target: str, ends: float, stated: bool
) -> None:
    levels = np.geomspace(0.07 if ends > 0.5 else 0.9, ends, 4)
    curves = {f"by_t/{at}": level * (1 + 0.05 * NOISE[1]) for at, level in enumerate(levels)}
    seen = diagnosed({"loss": 0.5 + 0.03 * NOISE[0], **curves}, prediction_type=target)
    assert ("loss_by_noise_backwards" in facts(seen)) is stated


@pytest.mark.parametrize(("dtype", "fact"), [
    ("bfloat16", "part_in_half_stands_still"), ("float32", "part_stands_still_with_gradient"),
])  # fmt: skip
def test_a_part_with_a_gradient_that_stays_in_half_precision_loses_its_updates(dtype: str, fact: str) -> None:
    norms = {"weight_norm/attn": 4 + 0.02 * SHARE, "weight_norm/gains": 17.8885}
    slopes = {"grad_norm/attn": 0.2 + 0.01 * NOISE[2], "grad_norm/gains": 0.08 + 0.004 * NOISE[3]}
    rounded = {name: np.round(curve, 4) for name, curve in norms.items()}
    assert fact in facts(diagnosed({**LEARNS, **rounded, **slopes}, param_dtype=dtype))


@pytest.mark.parametrize(("score", "stated"), [(3.8, True), (2.6, False)])
def test_a_score_behind_the_last_evaluation_is_that_of_the_same_weights(
    score: float, stated: bool, tmp_path: Path
) -> None:
    lines = ["vocab 96"]
    for step in range(0, 900, 30):
        lines.append(f"it {step} loss {2.5 + 2 / (1 + step / 60):.3f} grad_norm 0.5")
        lines += [f"val {2.5 + 1.5 / (1 + step / 100):.3f}"] if step % 150 == 120 else []
    (tmp_path / "train.log").write_text("\n".join([*lines, f"score.py: nll/char {score} bpc 5.4"]), encoding="utf-8")
    assert ("scored_apart_at_end" in facts(diagnose_run(tmp_path / "train.log"))) is stated


@pytest.mark.parametrize(("name", "values", "stated"), [
    ("v_mean", -500.0, True), ("v_mean", -6.0, False), ("v_absmax", 500.0, True),
])  # fmt: skip
def test_a_critic_far_beyond_what_episodes_earn_by_then_runs_off(name: str, values: float, stated: bool) -> None:
    curves = {"ep_return": -4 - 70 * np.exp(-20 * SHARE), name: values * SHARE, "entropy": 1 - 0.5 * SHARE,
              "approx_kl": 0.003 + 0.001 * np.abs(NOISE[1])}  # fmt: skip
    assert ("values_run_off" in facts(diagnosed(curves, algorithm="ppo"))) is stated


@pytest.mark.parametrize(("counted", "stated"), [(0.98, True), (0.05, False)])
def test_nearly_all_tokens_that_were_seen_count_though_most_are_prompts(counted: float, stated: bool) -> None:
    seen = diagnosed({**LEARNS, "seen_tokens": 1200 * STEPS, "loss_tokens": 1200 * counted * STEPS},
                     prompt_tokens=42, answer_tokens=3)  # fmt: skip
    assert ("both_sides_count" in facts(seen)) is stated


@pytest.mark.parametrize(("again", "stated"), [(0, True), (8, False)])
def test_files_that_begin_anew_at_a_resume_are_trained_on_again(again: int, stated: bool, tmp_path: Path) -> None:
    for job, (first, steps) in enumerate([(0, range(10, 240, 10)), (again, range(240, 430, 10))]):
        head = "restored last.pt (step 231)" if job else "starting"
        lines = [f"step={step} shard={first + (step - steps[0]) // 30} loss={4 - step / 300:.3f} lr=0.001"
                 for step in steps]  # fmt: skip
        (tmp_path / f"job_{job}.log").write_text("\n".join([head, *lines]), encoding="utf-8")
    assert ("rows_after_resume" in facts(diagnose_run(tmp_path))) is stated


def test_a_source_that_turns_round_while_others_stay_right_has_its_pairs_swapped() -> None:
    right = {f"{name}/gold": 0.8 + 0.1 * SHARE for name in ("wiki", "desk", "red")}
    turns = {"forum/gold": 0.82 - 0.7 * (SHARE > 0.5) + 0.01 * NOISE[2]}
    pairs = {"loss": 0.69 - 0.2 * SHARE, "rewards/margins": 0.5 * SHARE, "rewards/accuracies": 0.5 + 0.3 * SHARE}
    assert "source_mirrored" in facts(diagnosed({**pairs, **right, **turns}, loss_type="dpo"))
    assert "source_mirrored" not in facts(diagnosed({**pairs, **right, "forum/gold": 0.6 + 0.01 * NOISE[2]}))


@pytest.mark.parametrize(("apart", "stated"), [(0.0, True), (0.001, False)])
def test_an_evaluation_that_is_training_to_the_last_digit_is_of_the_same_rows(apart: float, stated: bool) -> None:
    seen = diagnosed(LEARNS, evaluated={"eval_loss": LOSS[9::10] + apart})
    assert ("evaluation_is_training" in facts(seen)) is stated
    assert ("train_eval_leakage" in {each.cause for each in seen.hypotheses[:3]}) is stated


def test_a_negated_bound_that_falls_gets_better() -> None:
    bound = 80 - 50 * (1 - np.exp(-SHARE[9::10] * 4))
    assert "score_worsens" not in facts(diagnosed(LEARNS, evaluated={"valid/neg_elbo": bound, "eval_loss": bound}))


@pytest.mark.parametrize(("chosen", "rejected", "stated"), [
    (31.0, 34.0, True), (12.0, 11.0, True), (3.0, 3.5, False), (12.0, 40.0, False), (-4.0, 30.0, False),
])  # fmt: skip
def test_pairs_of_which_both_answers_sink_alike_are_stated(chosen: float, rejected: float, stated: bool) -> None:
    margin = 0.1 * (rejected - chosen) * SHARE
    pairs = {
        "loss": np.log1p(np.exp(-margin)) + 0.01 * NOISE[0], "rewards/margins": margin + 0.02 * NOISE[1],
        "rewards/chosen": -0.1 * chosen * SHARE, "rewards/rejected": -0.1 * rejected * SHARE,
        "rewards/accuracies": 0.5 + 0.3 * SHARE, "logps/chosen": -60 - chosen * SHARE + 0.5 * NOISE[2],
        "logps/rejected": -64 - rejected * SHARE + 0.5 * NOISE[3],
    }  # fmt: skip
    seen = diagnosed(pairs)
    assert ("both_sides_sink" in facts(seen)) is stated
    assert not stated or "dpo_collapse" in {each.cause for each in seen.hypotheses[:2]}
