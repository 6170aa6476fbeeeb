"""What kind of run is this? Inferred from what it logs and how it is configured."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping

KINDS = ("pretraining", "sft", "preference", "grpo", "ppo", "rl", "supervised", "diffusion", "boosting")
"""The kinds of run that PLAYBOOK.md has priors for; `unknown` is the rest."""

_FINE_TUNING_SETTINGS = ("completion_only_loss", "assistant_only_loss")  # of TRL's SFTConfig alone
_ADAPTER_SETTINGS = ("lora_r", "lora_alpha", "peft_type", "finetuning_type")
"""Adapters are for tuning a model that exists: without a sign of another kind, that is supervised fine-tuning."""

_MODEL_SETTINGS = ("model_name_or_path", "base_model", "model_name", "model_id")
_TRAINED_LANGUAGE_MODEL = re.compile(
    r"llama|mistral|mixtral|qwen|gemma|deepseek|falcon|olmo|smollm|pythia|bloom|gpt-?(?:2|j|neo)|\b(?:phi|opt|yi|glm)-",
    re.IGNORECASE,
)
"""Families of language models that are published with their weights: who names one tunes it."""

BOOSTER = "booster"
"""The setting that says which boosted trees are trained: XGBoost's own name, and what the readers call them."""
_BOOSTING_SETTINGS = (BOOSTER, "boosting_type", "num_leaves", "num_boost_round")

_MARKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "preference",
        ("rewards/chosen", "rewards/margins", "rewards/accuracies", "logps/chosen", "eval_rewards/chosen"),
    ),
    ("grpo", ("frac_reward_zero_std", "completion_length", "completions/clipped_ratio")),
    (
        "ppo",
        (
            "objective/rlhf_reward",
            "ppo/returns/mean",
            "tokens/queries_len_mean",
            "policy_ratio",
        ),
    ),
    (
        "rl",
        (
            "explained_variance",
            "policy_loss",
            "episode",
            "episode_length",
            "exploration_rate",
            "QVals",
        ),
    ),
    ("grpo", ("reward_std",)),  # agents that learn a model of the reward log one too
    ("diffusion", ("loss_q0", "mse_q0", "vb_q0")),
    ("pretraining", ("skipped_iterations", "nan_iterations", "mfu", "consumed_tokens")),
    (
        "supervised",
        (
            "accuracy",
            "eval_accuracy",
            "eval_f1",
            "top1",
            "metrics/mAP50(B)",
            "bbox/AP",
            "box_loss",
            "loss_bbox",
            "loss_box_reg",
            "loss_rpn_cls",
            "iou_loss",
            "decode.loss_ce",
        ),
    ),
)


_OF_A_REWARD_MODEL = (("margin", "min_reward", "max_reward"), ("margin", "accuracy"))
"""What TRL's RewardTrainer, and others, log of pairs that a model scores: how often, and by how much, the chosen answer
has the higher score."""


def kind_of_run(metrics: Container[str], config: Mapping[str, object]) -> str:
    """Return the kind of run, or "unknown"."""
    words = _configured_words(config)
    scored = scores_pairs(metrics)
    for kind, hints in (
        ("preference", ("dpo", "kto", "orpo", "rm", "reward_modeling")),
        ("grpo", ("grpo", "rloo", "dapo")),
        ("ppo", ("ppo",)),
        ("sft", ("sft",)),
        ("pretraining", ("pt", "pretrain", "pretraining")),
    ):
        if any(hint in words for hint in hints) or (scored and kind == "preference"):
            return kind
    for kind, settings in (("sft", _FINE_TUNING_SETTINGS), ("boosting", _BOOSTING_SETTINGS)):
        if any(name in config for name in settings):
            return kind
    for kind, marks in _MARKS:
        if any(mark in metrics for mark in marks):
            return "ppo" if kind == "grpo" and "value_loss" in metrics else kind
    if "mean_token_accuracy" in metrics or any(name in config for name in _ADAPTER_SETTINGS):
        return "sft"
    return _rewarded(metrics) if "reward" in metrics else _of_its_model(config)


def _of_its_model(config: Mapping[str, object]) -> str:
    """Return the kind of a run of which no more is known than its loss and what model it trains."""
    if _TRAINED_LANGUAGE_MODEL.search(" ".join(str(config.get(name, "")) for name in _MODEL_SETTINGS)):
        return "sft"
    return "supervised" if "num_labels" in config or "num_classes" in config else "unknown"


def scores_pairs(metrics: Container[str]) -> bool:
    """Say whether these are the metrics of a reward model, which scores pairs of answers."""
    return any(all(name in metrics for name in names) for names in _OF_A_REWARD_MODEL)


def _rewarded(metrics: Container[str]) -> str:
    """Return the kind of a run that is rewarded: language models log how far they are from their reference."""
    if "kl" not in metrics:
        return "rl"
    return "ppo" if "value_loss" in metrics else "grpo"


def _configured_words(config: Mapping[str, object]) -> Iterable[str]:
    return {str(config.get(key, "")).lower() for key in ("stage", "trainer", "trainer_type", "rl", "task")}
