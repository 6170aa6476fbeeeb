from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.logs.reading import read

from mldebug_mcp.knowledge.catalogue import KINDS
from mldebug_mcp.logs import read_run
from mldebug_mcp.logs.kinds import kind_of_run
from mldebug_mcp.logs.names.metrics import canonical
from mldebug_mcp.logs.settings import Scalar, Settings


@pytest.mark.parametrize(
    ("metrics", "config", "kind"),
    [
        (("loss", "rewards/margins"), {}, "preference"),
        (("loss", "accuracy", "margin", "min_reward", "max_reward", "reward"), {}, "preference"),
        (("loss", "accuracy", "margin"), {}, "preference"),
        (("loss", "frac_reward_zero_std"), {}, "grpo"),
        (("loss", "completion_length"), {"task": "station sft"}, "grpo"),
        (("loss", "completion_length", "loss_tokens"), {"task": "station sft"}, "sft"),
        (("loss", "objective/rlhf_reward"), {}, "ppo"),
        (("value_loss", "explained_variance"), {}, "rl"),
        (("reward", "policy_objective"), {}, "rl"),
        (("pay", "q mean", "td²"), {}, "rl"),
        (("loss", "td", "lr"), {}, "unknown"),
        (("reward", "kl", "entropy"), {}, "grpo"),
        (("reward", "kl", "value_loss"), {}, "ppo"),
        (("reward", "kl", "eval_accuracy"), {"num_generations": 8}, "grpo"),
        (("loss", "skipped_iterations"), {}, "pretraining"),
        (("loss", "eval_accuracy"), {}, "supervised"),
        (("loss",), {"num_labels": 3}, "supervised"),
        (("loss", "mean_token_accuracy"), {}, "sft"),
        (("loss",), {"lora_r": 8}, "sft"),
        (("loss", "eval_accuracy"), {"num_leaves": 31}, "boosting"),
        (("loss",), {"stage": "pt", "lora_r": 8}, "pretraining"),
        (("loss",), {"stage": "dpo"}, "preference"),
        (("loss",), {"model_name_or_path": "meta-llama/Llama-3.1-8B"}, "sft"),
        (("loss", "eval_accuracy"), {"model_name_or_path": "Qwen/Qwen2.5-0.5B"}, "supervised"),
        (("loss",), {"model_name_or_path": "google-bert/bert-base-uncased"}, "unknown"),
        (("loss", "learning_rate"), {}, "unknown"),
        (("loss", "eval_accuracy"), {"task": "language_modelling", "num_classes": 10}, "pretraining"),
        (("loss", "eval_accuracy"), {"task": "image_classification"}, "supervised"),
        (("loss",), {"task": "causal_lm", "lora_r": 8}, "sft"),
        (("loss",), {"task": "causal_lm", "model_name_or_path": "Qwen/Qwen2.5-0.5B"}, "sft"),
        (("loss",), {"model/architectures": "BertForSequenceClassification", "vocab_size": 30522}, "supervised"),
        (("loss",), {"model": "GPT2LMHeadModel"}, "pretraining"),
        (("loss",), {"vocab_size": 96, "block_size": 32}, "pretraining"),
        (("loss", "reward"), {"framework": "trl GRPOTrainer"}, "grpo"),
        (("loss", "reward"), {"trainer": "grpo", "task": "short answers, reward model rm-v2"}, "grpo"),
        (("loss",), {"stage": "rm"}, "preference"),
        (("loss", "reward", "kl"), {"kind": "reinforce_rm"}, "grpo"),
        (("loss", "reward"), {"stage": "rlhf-reward", "num_generations": 8}, "grpo"),
        (("loss", "reward", "kl", "value_loss"), {"task": "learned reward, strings"}, "ppo"),
        (("loss", "reward", "kl"), {"trainer": "online_dpo"}, "preference"),
        (("loss", "explained_variance"), {"algo": "PPO", "env": "CartPole-v1"}, "rl"),
        (("loss",), {"trainer": "DPOTrainer", "model_type": "causal lm"}, "preference"),
        (("loss", "skipped_iterations"), {"model_name_or_path": "facebook/opt-1.3b"}, "sft"),
    ],
)
def test_the_kind_of_a_run_is_told_by_what_it_logs_and_how_it_is_configured(
    metrics: tuple[str, ...], config: dict[str, Scalar], kind: str
) -> None:
    assert kind_of_run(metrics, Settings.of(config)) == kind
    assert kind in (*KINDS, "unknown")


def test_a_critic_beside_completions_makes_it_ppo() -> None:
    assert kind_of_run({"completion_length", "reward", "value_loss"}, Settings()) == "ppo"
    assert kind_of_run({"completion_length", "reward"}, Settings()) == "grpo"


@pytest.mark.parametrize(
    ("first", "config", "kind"),
    [
        (4.75, {"vocab_size": 83}, "pretraining"),  # ln 83 is 4.42
        (10.9, {"model": {"vocab_size": 50257}, "lora_r": 8}, "sft"),
        (0.7, {"vocab_size": 30522}, "unknown"),  # a classifier of two classes
        (2.3, {"vocab_size": 50257, "num_labels": 10}, "supervised"),
        (4.75, {}, "unknown"),
    ],
)
def test_a_loss_that_begins_at_the_logarithm_of_the_vocabulary_is_that_of_a_language_model(
    tmp_path: Path, first: float, config: dict[str, object], kind: str
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    run = read(tmp_path, "".join(f"step {step} loss {first / step**0.1:.3f}\n" for step in range(1, 30)))
    assert run.kind == kind


def test_a_language_model_may_log_an_accuracy(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"vocab_size": 65}', encoding="utf-8")
    run = read(tmp_path, "".join(f"step {step} loss {4.2 / step**0.1:.3f} acc 0.3\n" for step in range(1, 30)))
    assert run.kind == "pretraining"


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({"gamma": 0.97, "ent_coef": 0.01, "clip_range": 0.2}, "rl"),
        ({"gamma": 0.99, "exploration_fraction": 0.4, "target_update_interval": 50}, "rl"),
        ({"gamma": 1.0, "gae_lambda": 0.95, "vocab_size": 50257, "max_completion_length": 64}, "ppo"),
        ({"gamma": 0.1, "milestones": [30, 60]}, "unknown"),  # of a schedule
    ],
)
def test_settings_that_only_agents_have_name_the_kind(tmp_path: Path, config: dict[str, object], kind: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    run = read(tmp_path, "".join(f"step {step} loss {0.1 / step:.5f}\n" for step in range(1, 30)))
    assert run.kind == kind


def test_columns_of_one_word_and_a_hyphen_are_no_boosted_trees_beside_a_gradient(tmp_path: Path) -> None:
    rows = "".join(f"{step * 32},{2.3 / step:.3f},1.0,0.002,{2.2 / step:.3f},0.4\n" for step in range(1, 30))
    path = tmp_path / "metrics.csv"
    path.write_text(f"samples-seen,loss,gradient-norm,current-lr,test-loss,test-accuracy\n{rows}", encoding="utf-8")
    assert read_run(path).kind == "supervised"


@pytest.mark.parametrize("score", ["val_iou", "val_mae", "r2", "eval_dice", "val_auc", "wer"])
def test_what_answers_are_scored_by_that_have_targets_makes_it_supervised(score: str) -> None:
    assert kind_of_run(["loss", canonical(score)], Settings()) == "supervised"


def test_a_reward_beside_such_a_score_still_makes_it_an_agent() -> None:
    assert kind_of_run(["loss", "reward", "eval_mae"], Settings()) == "rl"


@pytest.mark.parametrize("score", ["valid_hit@10", "val_ndcg", "R@1", "test_recall@20", "mrr"])
def test_pairs_are_of_items_where_items_are_ranked(score: str) -> None:
    pairs = [canonical("pair_acc"), canonical("valid_pair_acc"), "margin"]
    assert kind_of_run(["loss", *pairs], Settings()) == "preference"
    assert kind_of_run(["loss", *pairs, canonical(score)], Settings()) in ("supervised", "unknown")
    assert kind_of_run(["loss", *pairs, "logps/chosen", canonical(score)], Settings()) == "preference"
