"""What kind of run this is, and how far it was to go, from how it is configured and what it logs."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Container

import numpy as np

from mldebug_mcp.core.arrays import distinct, median, median_gap
from mldebug_mcp.core.lazy import dataclass, regex, replace
from mldebug_mcp.core.text import figure
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity, role_of
from mldebug_mcp.logs.names.conventions import BOOSTER
from mldebug_mcp.logs.names.settings import words_of
from mldebug_mcp.logs.names.words import pieces_of
from mldebug_mcp.logs.run import Ending, Run
from mldebug_mcp.logs.settings import Settings
from mldebug_mcp.logs.settings.settings import POLICIES

# What kind of run is this? Inferred from how it is configured and what it logs.

MAX_DISTANCE_FROM_UNIFORM = 0.2
"""Share of ln V by which the first loss of a language model may be off it: an initialisation adds some tenths of a nat,
and a first record may be a mean over the first steps. Chosen by hand; a classifier has far fewer than a vocabulary."""

_TELLING = ("task", "kind", "stage", "trainer", "trainer_type", "rl", "framework", "algorithm", "model", "model_type")
"""Settings whose words tell what is trained, and how."""
_REWARD_MODEL = frozenset({"rm", "reward", "preference"})
"""Words for the training of a reward model. A policy has one as well, and logs how far it is from its reference."""
_WORDS: tuple[tuple[str, frozenset[str]], ...] = (
    ("preference", frozenset({"dpo", "kto", "orpo", "ipo", "cpo", "simpo"})),
    ("grpo", frozenset({"grpo", "rloo", "dapo", "gspo"})),
    ("ppo", frozenset({"ppo"})),
    ("preference", _REWARD_MODEL),
    ("rl", frozenset({"dqn", "sac", "td3", "a2c", "a3c", "ddpg", "trpo", "rl", "reinforcement", "qlearning"})),
    ("diffusion", frozenset({"diffusion", "ddpm", "denoising", "unet2d"})),
    ("sft", frozenset({"sft", "instruction", "finetuning"})),
    (
        "supervised",
        frozenset(
            {"classification", "classifier", "regression", "segmentation", "detection", "recognition", "tagging"}
            | {"forecast", "forecasting"}
        ),
    ),
    (
        "pretraining",
        frozenset(
            {"pt", "pretrain", "pretraining", "lm", "clm", "mlm", "charlm", "wordlm", "causal", "language"}
            | {"autoregressive"}
        ),
    ),
)
"""Words of the field for each kind, in the order in which they decide: a method stands before the model it trains."""

_OF_PRETRAINING = frozenset({"pt", "pretrain", "pretraining"})

_OF_FINE_TUNING = (
    "completion_only_loss", "assistant_only_loss",
    "train_on_input", "train_on_inputs", "train_on_prompt", "train_on_source",
)  # fmt: skip
"""Settings of TRL's SFTConfig, torchtune, Axolotl, LLaMA-Factory and QLoRA for rows with a prompt."""
_OF_LABELS = "loss_tokens"
"""What is counted of rows with labels: without a reward, the length of an answer is then that of a fine-tune's."""
_OF_COMPLETIONS = frozenset({"completion", "completions", "response", "responses"})
_OF_ADAPTERS = ("lora_r", "peft_type", "finetuning_type")
"""Adapters are for tuning a model that exists: without a sign of another kind, that is supervised fine-tuning."""
_OF_BOOSTING = (BOOSTER, "boosting_type", "num_leaves", "num_boost_round")
_OF_AN_AGENT = ("environment", "n_envs", "total_timesteps", "gae_lambda")
_OF_AGENTS_ALONE = (
    "gae_lambda", "ent_coef", "exploration_fraction", "exploration_final_eps", "target_update_interval",
    "learning_starts", "n_envs", "environment",
)  # fmt: skip
"""What only those configure who train an agent: a `gamma` alone may be that of a schedule or of a focal loss."""
_OF_CRITICS = frozenset({"q", "critic", "value", "v", "actor"})
_LENGTHS_OF_POLICIES = ("max_completion_length", "max_prompt_length")
_OF_POLICIES = ("num_generations", *_LENGTHS_OF_POLICIES)

_TRAINED_LANGUAGE_MODEL = regex(
    r"llama|mistral|mixtral|qwen|gemma|deepseek|falcon|olmo|smollm|pythia|bloom|gpt-?(?:2|j|neo)|\b(?:phi|opt|yi|glm)-",
    re.IGNORECASE,
    needs=("llama", "mistral", "mixtral", "qwen", "gemma", "deepseek", "falcon", "olmo", "smollm", "pythia", "bloom",
           "gpt", "phi-", "opt-", "yi-", "glm-"),
)  # fmt: skip
"""Families of language models that are published with their weights: who names one tunes it."""

_MARKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "preference",
        ("rewards/chosen", "rewards/margins", "rewards/accuracies", "logps/chosen", "eval_rewards/chosen",
         "eval_logps/chosen"),
    ),
    ("grpo", ("frac_reward_zero_std", "completion_length", "completions/clipped_ratio")),
    ("ppo", ("objective/rlhf_reward", "ppo/returns/mean", "tokens/queries_len_mean", "policy_ratio")),
    ("rl", ("explained_variance", "policy_loss", "episode", "episode_length", "exploration_rate", "QVals")),
    ("grpo", ("reward_std",)),  # agents that learn a model of the reward log one too
    ("diffusion", ("loss_q0", "mse_q0", "vb_q0")),
    ("pretraining", ("skipped_iterations", "nan_iterations", "mfu", "consumed_tokens")),
    (
        "supervised",
        ("accuracy", "eval_accuracy", "eval_f1", "top1", "metrics/mAP50(B)", "bbox/AP", "box_loss", "loss_bbox",
         "loss_box_reg", "loss_rpn_cls", "iou_loss", "decode.loss_ce"),
    ),
)  # fmt: skip


_RANKINGS = frozenset({Quantity.NDCG, Quantity.MRR, Quantity.HIT_RATE})
"""What items are ranked by, besides the recall in the first k."""
_OF_TARGETS = _RANKINGS | frozenset(
    {Quantity.F1, Quantity.AUC, Quantity.AVERAGE_PRECISION, Quantity.IOU, Quantity.DICE, Quantity.R2}
    | {Quantity.CORRELATION, Quantity.ERROR_RATE, Quantity.WORD_ERROR_RATE}
    | {Quantity.ABSOLUTE_ERROR, Quantity.PERCENTAGE_ERROR}
)
"""What answers are scored by that have a target each, and no text, picture or game."""

_OF_PAIRS = frozenset({"rewards/accuracies", "rewards/margins", "margin"})
"""What pairs are scored by, of answers that a policy writes and of items that are ranked."""
_OF_A_REWARD_MODEL = (("margin", "min_reward", "max_reward"), ("margin", "accuracy"))
"""What TRL's RewardTrainer, and others, log of pairs that a model scores: how often, and by how much, the chosen answer
has the higher score."""


def kind_of_run(metrics: Collection[str], settings: Settings, first_loss: float | None = None) -> str:
    """Return the kind of run, or "unknown": what the configuration names goes before what metrics suggest."""
    metrics = _marks_of_a_kind(metrics)
    of_pairs = scores_pairs(metrics) or _begins_at_even_pairs(metrics, first_loss)
    named_kind = "preference" if of_pairs else _kind_in_configuration(metrics, settings)
    if named_kind is not None:
        is_tuned = named_kind == "pretraining" and any(name in settings for name in _OF_FINE_TUNING)
        return "sft" if is_tuned else named_kind
    for kind, names in (("sft", _OF_FINE_TUNING), ("boosting", _OF_BOOSTING)):
        if any(name in settings for name in names):
            return kind
    if _is_rewarded(metrics, settings):
        return "ppo" if "value_loss" in metrics else "grpo"
    for kind, marks in _MARKS:
        by_vocabulary = kind == "pretraining" and _begins_at_uniform(settings, first_loss)
        found = {mark for mark in marks if mark in metrics}
        if not by_vocabulary and found == {"skipped_iterations"} and _is_scored(metrics):
            continue  # other loops in half precision count them, too
        if by_vocabulary or found:
            if kind == "pretraining":
                return "sft" if _tunes(settings) or _scores_completions(metrics) else kind
            is_agent = kind == "ppo" and _trains_an_agent(settings)
            return "rl" if is_agent else "ppo" if kind == "grpo" and "value_loss" in metrics else kind
    return _by_its_kin(metrics, settings)


def _marks_of_a_kind(metrics: Collection[str]) -> Collection[str]:
    """Return the metrics without those that are of another thing than in the kind that they usually mark."""
    of_a_loss = _OF_LABELS in metrics or {"loss", "eval_loss"} <= set(metrics)  # a Seq2SeqTrainer logs `gen_len`
    if of_a_loss and not any("reward" in name for name in metrics):
        metrics = frozenset(metrics) - {"completion_length"}
    return frozenset(metrics) - _OF_PAIRS if _ranks_items(metrics) else metrics


def _trains_an_agent(settings: Settings, *signs: str) -> bool:
    """Say whether an agent is configured and no language model; further `signs` count as well."""
    is_agent = any(name in settings for name in (*_OF_AGENTS_ALONE, *signs))
    return is_agent and not _is_language_model(settings, _words_of(settings))


def _by_its_kin(metrics: Collection[str], settings: Settings) -> str:
    """Return the kind of a run that neither words nor marks name, by what else is set and logged."""
    if any(name in settings for name in _OF_AGENTS_ALONE):
        return "ppo" if _is_language_model(settings, _words_of(settings)) else "rl"
    if any(name in metrics for name in ("mean_token_accuracy", "eval_mean_token_accuracy")) or any(
        name in settings for name in _OF_ADAPTERS
    ):
        return "sft"
    if "reward" in metrics:
        return _rewarded(metrics)
    if _learns_by_differences(metrics):
        return "rl"
    kind = _of_its_model(settings)
    return "supervised" if kind == "unknown" and _is_scored(metrics) else kind


def _learns_by_differences(metrics: Collection[str]) -> bool:
    """Say whether a critic learns by temporal differences: they are logged, and what it foresees."""
    words = [set(pieces_of(name)) for name in metrics]
    return any("td" in of for of in words) and any(of & _OF_CRITICS and "td" not in of for of in words)


def _is_scored(metrics: Collection[str]) -> bool:
    """Say whether answers are scored that have a target each."""
    return any((role := role_of(name)) is not None and role.quantity in _OF_TARGETS for name in metrics)


def _ranks_items(metrics: Collection[str]) -> bool:
    """Say whether items are ranked, as recommenders and search do it: pairs are then of items."""
    roles = [role for name in metrics if (role := role_of(name)) is not None]
    return any(
        role.quantity in _RANKINGS or (role.quantity is Quantity.RECALL and role.part.isdigit()) for role in roles
    )


def _scores_completions(metrics: Collection[str]) -> bool:
    """Say whether completions of prompts are measured apart: `eval_completion_exact`, `response_nll`."""
    roles = [role for name in metrics if (role := role_of(name)) is not None]
    return any(
        role.quantity in (Quantity.ACCURACY, Quantity.LOSS) and not _OF_COMPLETIONS.isdisjoint(role.part.split())
        for role in roles
    )


def scores_pairs(metrics: Container[str]) -> bool:
    """Say whether these are the metrics of a reward model, which scores pairs of answers."""
    return any(all(name in metrics for name in names) for names in _OF_A_REWARD_MODEL)


MAX_DISTANCE_FROM_EVEN = 0.08
"""Nats by which the first loss of a model that scores pairs may be off ln 2. Chosen: a first record is a mean."""


def _begins_at_even_pairs(metrics: Container[str], first_loss: float | None) -> bool:
    """Say whether an accuracy stands with a gap between two answers, and the loss begins at that of even scores."""
    gap = "accuracy" in metrics and any(name in metrics for name in ("gap", "score_gap", "reward_gap", "diff"))
    return gap and first_loss is not None and abs(first_loss - math.log(2)) <= MAX_DISTANCE_FROM_EVEN


def _kind_in_configuration(metrics: Collection[str], settings: Settings) -> str | None:
    """Return the kind that words of the configuration name, None if there are none."""
    words = _words_of(settings)
    words -= _REWARD_MODEL if _is_rewarded(metrics, settings) or {"reward", "kl"} <= set(metrics) else frozenset()
    kind = next((kind for kind, known in _WORDS if known & words), None)
    if kind == "ppo" and _trains_an_agent(settings, *_OF_AN_AGENT):
        return "rl"
    if kind == "pretraining" and _OF_PRETRAINING.isdisjoint(words) and _tunes(settings):
        kind = "sft"
    if kind in ("supervised", "pretraining", "sft"):  # words of the model: the method may show in the metrics alone
        return next((method for method, marks in _MARKS[:5] if any(mark in metrics for mark in marks)), kind)
    return kind


def _is_rewarded(metrics: Collection[str], settings: Settings) -> bool:
    """Say whether a policy is rewarded for completions that it samples."""
    samples = "reward" in metrics and any(name in settings for name in _OF_POLICIES)
    return samples and not _trains_an_agent(settings)


def _words_of(settings: Settings) -> frozenset[str]:
    values = [settings[name].value for name in _TELLING if name in settings]
    texts = [text for value in values for text in (value if isinstance(value, tuple) else (value,))]
    return frozenset(word for text in texts if isinstance(text, str) for word in words_of(text))


def _is_language_model(settings: Settings, words: Collection[str]) -> bool:
    named = any(name in settings for name in ("vocab_size", "model_name_or_path", *_LENGTHS_OF_POLICIES))
    return named or not {"causal", "lm", "language"}.isdisjoint(words)


def _tunes(settings: Settings) -> bool:
    """Say whether adapters or a published language model are trained, which are for tuning."""
    return any(name in settings for name in _OF_ADAPTERS) or _names_a_trained_model(settings)


def _names_a_trained_model(settings: Settings) -> bool:
    return _TRAINED_LANGUAGE_MODEL.search(settings.text("model_name_or_path")) is not None


def _begins_at_uniform(settings: Settings, loss: float | None) -> bool:
    """Say whether a loss begins where a model stands that knows nothing: at the logarithm of its vocabulary's size."""
    vocabulary = settings.number("vocab_size")
    if vocabulary is None or vocabulary < 2 or loss is None:
        return False
    return abs(loss / math.log(vocabulary) - 1) <= MAX_DISTANCE_FROM_UNIFORM


def _of_its_model(settings: Settings) -> str:
    """Return the kind of a run known only by its loss and its model."""
    if _names_a_trained_model(settings):
        return "sft"
    if settings.number("num_labels") is not None:
        return "supervised"
    is_from_scratch = settings.number("vocab_size") is not None and "model_name_or_path" not in settings
    return "pretraining" if is_from_scratch and settings.number("sequence_length") is not None else "unknown"


def _rewarded(metrics: Container[str]) -> str:
    """Return the kind of a run that is rewarded: language models log how far they are from their reference."""
    if "kl" not in metrics:
        return "rl"
    return "ppo" if "value_loss" in metrics else "grpo"


# How far a run was to go, in the unit of its log, and what follows from that and all else that is known of it.

INTERVAL_ROUNDING_SHARE = 1e-3
"""Share of an interval that rounding makes."""
MIN_RECORDS_OF_EPOCH = 3
"""Records in each epoch from which on those of the last one tell how much of it is done. Chosen by hand: one record of
training and one of evaluation are of its end."""
TOTALS = ("total_steps", "max_steps", "total_iterations", "num_training_steps")
"""Metrics by which some trainers log the plan in each record."""


MIN_EPOCHS_TO_PLACE_ONE = 20
"""Planned epochs from which on the number of an epoch under way places it well enough. Chosen: one is then 5 %."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan and what of it was reached.

    Args:
        unit: "step", "epoch" or "episode".
        planned: How many of them.
        reached: Where the log ends.
        interval: Distance between records.
        from_zero: The log counts from 0, so that the last of N is N-1.
    """

    unit: str
    planned: float
    reached: float
    interval: float
    from_zero: bool = False

    @property
    def is_done(self) -> bool:
        """Whether the next record would lie beyond the plan."""
        missing = self.planned - self.reached
        last = self.interval * (1 + INTERVAL_ROUNDING_SHARE)
        return missing <= last if self.from_zero else missing < self.interval * (1 - INTERVAL_ROUNDING_SHARE)


def plan_of(run: Run) -> Plan | None:
    """Return the plan in the unit in which the log counts; None if there is none, or the log goes far beyond it.

    What was set comes before what the counters of the log say ("Epoch 3/10").
    """
    steps, epochs = run.setting("max_steps"), run.setting("num_train_epochs")
    if steps and steps > 0:
        steps *= run.facts.steps_per_update
    else:
        steps = run.planned.get("step") if not epochs or run.planned.get("epoch") == epochs else None
    epochs = epochs or run.planned.get("epoch")
    logged = next((run[name].finite for name in TOTALS if name in run and len(run[name].finite)), None)
    if logged is not None:
        steps = float(logged.value[-1])
    counted = _counted_steps(run) if steps is not None and steps > 0 else None
    if counted is None and epochs is not None and epochs > 0:
        steps, counted = epochs, _counted_epochs(run, epochs)
    if counted is None and run.step_name == "episode" and "episode" in run.planned and run.series:
        steps, counted = run.planned["episode"], ("episode", max(run.series.values(), key=len).step)
    if counted is None or steps is None:
        return None
    unit, counter = counted
    reached = float(counter[-1])
    if not 0 < reached <= 1.05 * steps:
        return None
    reached = reached if unit == "step" else min(reached, steps)
    return Plan(unit, steps, reached, _interval(counter), from_zero=float(counter[0]) == 0)


def _counted_steps(run: Run) -> tuple[str, Floats] | None:
    if run.step_name != "step" or not run.series:
        return None
    longest = max(run.series.values(), key=len).step
    return "step", longest if longest[-1] == run.last_step else np.append(longest, run.last_step)


def _counted_epochs(run: Run, planned: float) -> tuple[str, Floats] | None:
    if run.step_name == "epoch" and run.series:
        counter = distinct(max(run.series.values(), key=len).step)
    elif "epoch" in run and len(run["epoch"].finite):
        epochs = run["epoch"].finite.value
        if _is_part_of_one(epochs) and (epochs[-1] >= planned or planned < MIN_EPOCHS_TO_PLACE_ONE):
            return None
        begun = _epochs_done(epochs)
        counter = distinct(epochs) if begun is None else begun
    else:
        return None
    return "epoch", counter


def _is_part_of_one(epochs: Floats) -> bool:
    """Say whether all records are of one epoch: no record tells how much of it is done."""
    return len(epochs) > 1 and bool(np.all(epochs == epochs[0])) and not epochs[0] % 1


def _epochs_done(epochs: Floats) -> Floats | None:
    """Return how many epochs are done at each record, where an epoch is a whole number and has several records.

    The last one is as far as its records are, of as many as the others have. None elsewhere.
    """
    numbers, counts = np.unique(epochs, return_counts=True)
    if len(numbers) < 2 or len(numbers) == len(epochs) or not np.all(np.diff(numbers) == 1) or numbers[0] % 1:
        return None
    usual = median(counts[:-1])
    if usual < MIN_RECORDS_OF_EPOCH:
        return None
    first = min(1.0, float(numbers[0]))
    within = np.concatenate([np.arange(1, count + 1) for count in counts]) / usual
    return np.asarray(np.sort(epochs) - first + np.minimum(within, 1.0))


def _interval(steps: Floats) -> float:
    return median_gap(steps) if len(steps) > 1 else float(steps[0])


def concluded(run: Run) -> Run:
    """Return a run, once all of its metrics and settings are known, with what follows from them together.

    That is the kind of run, and, where nothing else tells how it ends, that it finished if its plan is reached.
    """
    losses = run["loss"].finite.value[:1].tolist() if "loss" in run else []
    run = replace(run, kind=kind_of_run(run.series, run.settings, next(iter(losses), None)))
    if run.kind in POLICIES:
        run = replace(run, settings=run.settings.of_a_policy(run.records))
    plan = plan_of(run) if run.ending.how in ("open", "cut", "silence") else None
    if plan is None or not plan.is_done:
        return run
    ending = Ending("finished", f"{plan.unit} {figure(plan.reached)} of {figure(plan.planned)}")
    attempts = (replace(attempt, ending=ending) if attempt.judged else attempt for attempt in run.attempts)
    return replace(run, ending=ending, attempts=tuple(attempts))
