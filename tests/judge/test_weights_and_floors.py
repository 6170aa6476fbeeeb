"""Weights that stand still, samples that are old, tasks that are solved, floors of the data: stated, and weighed."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.runs import diagnosed as run_of

from mldebug_mcp import RunDiagnosis, diagnose_run

NOISE = np.random.default_rng(5).normal(0, 1, 1000)


def share(answer: RunDiagnosis, cause: str) -> float:
    return {hypothesis.cause: hypothesis.probability for hypothesis in answer.hypotheses}.get(cause, 0.0)


def text_of(answer: RunDiagnosis, fact: str) -> str:
    return next((one.text for one in answer.sheet.facts if one.fact == fact), "")


def slow(step: int) -> float:
    return 2.3 - 0.1 * step / 120 + 0.005 * float(NOISE[step])


@pytest.mark.parametrize(("trunk", "stated"), [(lambda _: 5.24, True), (lambda step: 5.24 + step / 100, False)])
def test_a_part_whose_weights_keep_their_norm_while_another_part_learns_is_not_trained(
    trunk: Any, stated: bool
) -> None:
    gradient = 0.0 if stated else 0.2
    answer = run_of({
        "loss": slow, "gnorm_trunk": lambda _: gradient, "gnorm_head": lambda step: 0.2 + 0.02 * NOISE[step],
        "wnorm_trunk": trunk, "wnorm_head": lambda step: 1.8 + step / 50,
    })  # fmt: skip
    assert ("wnorm_trunk is exactly 5.24 in all 120 records" in text_of(answer, "part_stands_still")) is stated
    assert (answer.hypotheses[0].cause == "params_not_training") is stated


@pytest.mark.parametrize(("still", "moving", "fact"), [
    ("norm/head", "norm/encoder", "last_layer_stands_still"),
    ("l2/classifier", "l2/backbone", "last_layer_stands_still"),
    ("output_norm", "decoder_norm", "last_layer_stands_still"), ("norm/backbone", "norm/head", "part_stands_still"),
    ("norm/decoder/output", "norm/encoder", "new_part_stands_still"), ("norm/images", "norm/noise", ""),
])  # fmt: skip
def test_a_last_layer_that_stands_still_while_a_part_below_it_learns_is_not_trained(
    still: str, moving: str, fact: str
) -> None:
    norms = {still: lambda _: 0.4839, moving: lambda step: 6.6 + step / 100}
    answer = run_of({"loss": slow, "grad_norm": lambda step: 0.5 + 0.05 * NOISE[step], **norms}, learning_rate=2e-4)
    assert {one.fact for one in answer.sheet.facts if "stands_still" in one.fact} == ({fact} if fact else set())
    assert answer.hypotheses[0].cause == "params_not_training" or not fact.startswith(("last", "new"))


@pytest.mark.parametrize(
    ("settings", "stated"),
    [({"freeze_trunk": True}, False), ({"lora_r": 8}, False), ({"freeze_trunk": False}, True), ({"seed": 1}, True)],
)
def test_a_part_that_is_frozen_on_purpose_may_stand_still(settings: dict[str, Any], stated: bool) -> None:
    columns = {"loss": slow, "wnorm_trunk": lambda _: 5.24, "wnorm_head": lambda step: 1.8 + step / 50}
    assert bool(text_of(run_of(columns, **settings), "part_stands_still")) is stated


@pytest.mark.parametrize(("still", "moving", "settings", "end", "is_new"), [
    ("l2_norm/param/item_tower", "l2_norm/param/user_tower", {"lr": 1e-3}, 1.02, True),
    ("weight_norm/user_emb", "weight_norm/item_emb", {"lr": 0.01, "pretrained": False}, 0.8, True),
    ("wnorm_pos_embed", "wnorm_blocks", {"optimizer": "adam"}, 1.3, True),
    ("l2_norm/param/item_tower", "l2_norm/param/user_tower", {"pretrained": True}, 1.02, False),
    ("param_norm/teacher", "param_norm/student", {"lr": 1e-3}, 1.3, False),
    ("wnorm_pos_embed", "wnorm_blocks", {"init_from": "base.pt"}, 1.3, False),
    ("wnorm_pos_embed", "wnorm_blocks", {}, 1.3, False),
])  # fmt: skip
def test_a_part_of_a_new_model_that_stands_still_while_the_loss_falls_is_not_trained(
    still: str, moving: str, settings: dict[str, Any], end: float, is_new: bool
) -> None:
    norms = {still: lambda _: 5.5412, moving: lambda step: 5.4 * (1 + (end - 1) * step / 120)}
    answer = run_of(
        {"loss": lambda step: 2 + 4 * math.exp(-step / 25) + 0.05 * float(NOISE[step]), **norms}, **settings
    )
    assert (text_of(answer, "new_part_stands_still") != "") is is_new
    assert (answer.hypotheses[0].cause == "params_not_training") is is_new


@pytest.mark.parametrize("name", ["weights_changed", "frac_params_updated", "share_of_weights_moved"])
@pytest.mark.parametrize(("setting", "stated"), [("param_dtype", True), ("amp_dtype", False)])
def test_few_weights_that_change_are_rounded_away_where_they_are_kept_in_half_precision(
    name: str, setting: str, stated: bool
) -> None:
    columns = {"loss": slow, "grad_norm": lambda _: 3.2, name: lambda step: 0.05 - 0.04 * step / 120}
    settings: dict[str, Any] = {setting: "bfloat16", "learning_rate": 6e-4, "optimizer": "sgd"}
    answer = run_of(columns, **settings)
    assert (f"{name} goes from" in text_of(answer, "few_weights_change")) is stated
    assert (answer.hypotheses[0].cause == "low_precision_update") is stated


@pytest.mark.parametrize(("pixels", "beta", "end", "cause"), [
    (1, 1.0, 1e-4, "wrong_loss"), (200, 1.0, 1e-4, "representation_collapse"), (1, 0.005, 1e-4, ""), (1, 1.0, 0.05, ""),
])  # fmt: skip
def test_a_divergence_that_vanishes_in_full_next_to_a_mean_over_pixels_is_one_of_two_reductions(
    pixels: int, beta: float, end: float, cause: str
) -> None:
    def error(step: int) -> float:
        return pixels * (0.23 + 0.46 * math.exp(-step / 20) + 0.005 * float(NOISE[step]))

    def code(step: int) -> float:
        return end + 0.08 * math.exp(-step / 6)

    answer = run_of({"loss": lambda step: error(step) + beta * code(step), "recon": error, "kld": code})
    assert bool(text_of(answer, "divergence_against_mean")) is (cause == "wrong_loss")
    if cause:
        assert answer.hypotheses[0].cause == cause


def policy(**more: Any) -> dict[str, Any]:
    return {
        "reward": lambda step: 0.1 + 0.85 * (1 - math.exp(-step / 30)) + 0.01 * NOISE[step],
        "kl": lambda step: 0.02 * step,
        "entropy": lambda step: 0.02 + 2.2 * math.exp(-step / 40),
        "zero_std_groups": lambda step: min(0.9, step / 100),
    } | more


def test_a_policy_whose_answers_come_right_with_its_reward_solved_its_task() -> None:
    right = lambda step: 0.97 * (1 - math.exp(-step / 30))  # noqa: E731
    answer = run_of(policy(exact=right), algorithm="grpo", learning_rate=1e-5)
    without = run_of(policy(), algorithm="grpo", learning_rate=1e-5)
    assert "the answers are right, too" in text_of(answer, "solved_with_reward")
    assert not text_of(without, "solved_with_reward")
    assert answer.hypotheses[0].cause == "healthy"
    assert share(answer, "healthy") > share(without, "healthy")
    assert share(answer, "reward_hacking") < share(without, "reward_hacking")


def test_groups_that_are_spreadless_are_no_part_of_the_reward_they_stand_below() -> None:
    columns = policy()
    columns["reward/zero_std_groups"] = columns.pop("zero_std_groups")
    answer = run_of(columns, algorithm="grpo", learning_rate=1e-5)
    assert "frac_reward_zero_std" in answer.run.metrics


def test_a_rubric_that_falls_while_the_score_of_a_reward_model_rises_is_reward_hacking() -> None:
    rubric = lambda step: 0.4 + 0.3 * math.exp(-(((step - 30) / 20) ** 2)) - 0.35 * step / 120  # noqa: E731
    columns = policy(human_rubric=rubric)
    answer = run_of({"rm_score": columns.pop("reward")} | columns, algorithm="grpo", learning_rate=1e-5)
    assert answer.hypotheses[0].cause == "reward_hacking"


@pytest.mark.parametrize("logged", ["", "completion_length", "resp_chars"])
def test_earning_by_length_is_not_seen_where_no_length_is_logged(logged: str) -> None:
    def success(step: int) -> float:
        return 0.05 + 0.7 / (1 + math.exp((step - 60) / 8))

    columns = policy(grad_norm=lambda step: math.exp(-step / 15)) | {"distinct_tokens": lambda step: 1 + 400 / step}
    columns |= {logged: lambda step: 25 + step} if logged else {}
    answer = run_of(columns, {"eval_task_success": success}, algorithm="grpo", learning_rate=1e-5)
    against = next(one.against for one in answer.hypotheses if one.cause == "length_exploitation")
    assert any("no length is logged" in reason for reason in against) is not bool(logged)
    assert logged or answer.hypotheses[0].cause == "reward_hacking"


@pytest.mark.parametrize(("back", "stated"), [(True, True), (False, False)])
def test_an_evaluation_that_is_worse_for_a_stretch_and_comes_back_is_not_of_a_healthy_run(
    back: bool, stated: bool
) -> None:
    def loss(step: int) -> float:
        in_stretch = 180 < step <= 220 or (step > 180 and not back)
        pulled = 0.35 * math.exp(-(step - 220) / 8) if step > 220 and back else 0.0
        return 0.37 + 0.3 * math.exp(-step / 30) + 0.6 * in_stretch + pulled + 0.01 * float(NOISE[step])

    answer = run_of({"logloss": loss}, {"val_fixed_logloss": loss}, steps=320, learning_rate=1e-3)
    assert bool(text_of(answer, "worse_for_a_stretch")) is stated
    assert share(answer, "healthy") < 0.2


@pytest.mark.parametrize(("most", "stated"), [(109, True), (4, False)])
def test_samples_of_a_policy_that_is_many_updates_old_are_stale(most: int, stated: bool) -> None:
    def age(step: int) -> int:
        return step % (most + 1)

    answer = run_of(
        {
            "reward": lambda step: 0.1 + 0.002 * step + 0.02 * NOISE[step],
            "entropy": lambda step: 1.5 - step / 400,
            "rollout/weights_age_updates": age,
            "policy/ess_frac": lambda step: math.exp(-age(step) / 30),
        },
        steps=240,
        algorithm="grpo",
    )
    assert (f"weights_age_updates goes up to {most}" in text_of(answer, "stale_policy")) is stated
    assert (share(answer, "off_policy_staleness") > 0.2) is stated


@pytest.mark.parametrize(("counted", "setting", "leads"), [
    (864, {"loss_on": "answer"}, True), (832, {"train_on_input": False}, True),
    (864, {"train_on_prompts": False}, True), (224, {"loss_on": "answer"}, False),
    (864, {"loss_on": "everything"}, False), (832, {"train_on_input": True}, False),
    (224, {"train_on_input": False}, False),
])  # fmt: skip
def test_a_loss_on_all_tokens_contradicts_a_setting_that_leaves_it_on_answers(
    counted: int, setting: dict[str, Any], leads: bool
) -> None:
    columns = {"loss": slow, "train/tokens_in_loss": lambda _: counted, "train/tokens_in_batch": lambda _: 864}
    answer = run_of(columns, **setting, prompt_len=20, batch_size=32, learning_rate=1e-3)
    assert bool(text_of(answer, "prompts_count_unmeant")) is leads
    assert (answer.hypotheses[0].cause == "prompt_not_masked") is leads or True in setting.values()


@pytest.mark.parametrize(("name", "counted", "settings", "leads"), [
    ("loss_tokens", 496, {"completion_only_loss": True, "max_length": 32}, True),
    ("train/target_tokens", 512, {"loss_on": "responses", "seq_len": 32}, True),
    ("n_label_tokens", 496, {"train_on_inputs": False, "max_seq_length": 32}, True),
    ("loss_tokens", 231, {"completion_only_loss": True, "max_length": 32}, False),
    ("loss_tokens", 496, {"completion_only_loss": True, "max_length": 512}, False),
    ("loss_tokens", 496, {"seq_len": 32, "task": "pretraining"}, False),
])  # fmt: skip
def test_a_loss_on_all_places_of_the_rows_contradicts_a_setting_that_leaves_it_on_answers(
    name: str, counted: int, settings: dict[str, Any], leads: bool
) -> None:
    answer = run_of({"loss": slow, name: lambda _: counted}, batch_size=16, learning_rate=1e-3, **settings)
    assert bool(text_of(answer, "prompts_count_unmeant")) is leads
    assert (answer.hypotheses[0].cause == "prompt_not_masked") is leads


HEADS = [
    "> dataset: chain of order 2, conditional entropy of the source on validation: 1.3150 nats (uniform: 2.77)",
    "notes | reference continuations from the data: legal=0.926 chain_nll=1.315",
]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize(("end", "fact", "cause"), [
    (0.002, "below_data_floor", "label_shift_error"), (1.33, "near_data_floor", "healthy"), (2.2, "", ""),
])  # fmt: skip
def test_a_loss_is_compared_with_the_entropy_of_the_data_that_the_log_states(
    tmp_path: Path, head: str, end: float, fact: str, cause: str
) -> None:
    def loss(step: int) -> float:
        return end + (2.77 - end) * math.exp(-step / 60)

    lines = [f"step {step} loss {loss(step):.4f} lr 0.003" for step in range(1, 700, 5)]
    lines = [
        line for at, line in enumerate(lines) for line in ([line, _evaluation(5 * at + 1, loss)][: 1 + (at % 10 == 9)])
    ]
    (tmp_path / "train.log").write_text("\n".join([head, *lines]) + "\n")
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": 16, "seq_len": 48, "lr": 0.003, "model": "gru"}))
    answer = diagnose_run(tmp_path)
    stated = {one.fact for one in answer.sheet.facts} & {"below_data_floor", "near_data_floor"}
    assert stated == ({fact} if fact else set())
    assert not cause or answer.hypotheses[0].cause == cause


@pytest.mark.parametrize(("head", "stated"), [
    ("Loaded charlm-48 (60,892 params; reported eval_loss 0.527)", True),
    ("loading weights from pre/last.pt, val loss = 0.61", True),
    ("=> loaded checkpoint base.ckpt with a validation loss of 0.58", True),
    ("Loaded the best checkpoint (val loss 0.53)", False), ("Loaded 800 rows, 0.53 GB", False),
])  # fmt: skip
def test_a_start_is_compared_with_the_loss_that_loaded_weights_have_by_the_log(
    tmp_path: Path, head: str, stated: bool
) -> None:
    lines = [f"step {step} loss {2 + 5.7 * math.exp(-step / 60):.4f} lr 0.0003" for step in range(1, 300, 5)]
    (tmp_path / "train.log").write_text("\n".join([head, *lines]) + "\n")
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": 28, "seq_len": 32, "lr": 3e-4, "model": "gru"}))
    answer = diagnose_run(tmp_path)
    assert bool(text_of(answer, "surer_than_guess_as_loaded")) is stated
    assert (answer.hypotheses[0].cause == "tokenizer_mismatch") is stated


def _evaluation(step: int, loss: Any) -> str:
    return f"step {step} val_loss {loss(step) + 0.001:.4f}"


def test_a_likelihood_of_samples_is_no_second_held_out_set() -> None:
    loss = lambda step: 0.01 + 2.7 * math.exp(-step / 10)  # noqa: E731
    evaluated = {"eval_loss": loss, "eval_chain_nll": lambda step: 5.8 - 3 * math.exp(-step / 10)}
    assert not text_of(run_of({"loss": loss}, evaluated), "held_out_sets_disagree")
    evaluated = {"eval_loss": loss, "eval_later_loss": evaluated["eval_chain_nll"]}
    assert text_of(run_of({"loss": loss}, evaluated), "held_out_sets_disagree")


def off_by(value: Any, share: float) -> Any:
    return lambda step: value(step) * (1 + share * NOISE[step])


def test_a_second_evaluation_of_the_same_weights_with_other_values_is_not_in_evaluation_mode() -> None:
    loss = lambda step: 0.4 + 1.5 * math.exp(-step / 30)  # noqa: E731
    for off, stated in ((0.05, True), (1e-6, False)):
        answer = run_of({"loss": loss}, {"val_loss": loss, "val_rerun_same_weights_loss": off_by(loss, off)})
        assert bool(text_of(answer, "evaluated_twice")) is stated
        assert (share(answer, "eval_mode_bug") > 0.3) is stated


@pytest.mark.parametrize("dropout", [0, 0.3])
def test_training_behind_a_verified_set_that_is_answers_all_is_of_noisy_labels(dropout: float) -> None:
    records: list[dict[str, Any]] = [
        {"step": step, "split": "train", "loss": {"mean": 1.9 + 1.8 * math.exp(-step / 20) + 0.05 * NOISE[step]},
         "top1": 0.63 * (1 - math.exp(-step / 20))}
        for step in range(1, 300, 2)
    ]  # fmt: skip
    evaluated = [{"step": step, "split": "verified_dev", "loss": {"mean": 0.5}, "top1": 1.0} for step in (99, 199, 299)]
    records = sorted([*records, *evaluated], key=lambda record: float(record["step"]))
    answer = diagnose_run(records, settings={"dropout": dropout, "augmentation": "none", "num_labels": 40, "lr": 0.1})
    assert bool(text_of(answer, "undisturbed_training_behind")) is (dropout == 0)
    assert answer.run.last["loss"] == pytest.approx(1.9, abs=0.2)
    assert dropout or answer.hypotheses[0].cause == "label_noise"


def test_clips_are_rows_and_no_norm_of_gradients() -> None:
    answer = run_of({"loss": slow}, train_clips=6000, lr=0.003)
    settings = {setting.name: setting.value for setting in answer.sheet.settings}
    assert "max_grad_norm" not in settings
    assert settings["train_rows"] == "6000"
