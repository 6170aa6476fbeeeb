"""Faults of runs by TRL's own trainers: of their rows, their settings, their reward and their tokenizer."""

from __future__ import annotations

import random

from benchmarks.faults.faults.fault import Fault, evaluation_below
from benchmarks.faults.games import Row
from benchmarks.faults.trl_runs import DpoRun, GrpoRun, SftRun, TrlRun, correct

SFT = ("trl_sft_reversal", "trl_sft_sum")
DPO = ("trl_dpo_reversal", "trl_dpo_sum")
GRPO = ("trl_grpo_reversal", "trl_grpo_sum")


def rate_times(run: TrlRun, severity: float) -> None:
    """Multiply the learning rate; where it rises, nothing is clipped."""
    run.lr *= severity
    if severity > 1:
        run.options["max_grad_norm"] = 0.0


def without_warmup(run: TrlRun, severity: float) -> None:
    """Start at the peak of a high learning rate."""
    run.lr, run.warmup, run.onset = run.lr * severity, 0, 1


def prompts_count(run: SftRun, _: float) -> None:
    """Take the loss over the prompts too."""
    run.options["completion_only_loss"] = run.config["completion_only_loss"] = False


def other_numbers(run: SftRun, severity: float) -> None:
    """Fine-tune with a tokenizer whose numbers are off by some places."""
    run.moved, run.onset = int(severity), 1


def other_end(run: GrpoRun, _: float) -> None:
    """Sample with a tokenizer whose end token the model never writes."""
    run.end = "<end>"


def few_rows(run: TrlRun, severity: float) -> None:
    """Go over a few rows, a third of them answered wrongly, again and again."""
    run.examples, run.lr, run.options["lr_scheduler_type"] = int(severity), run.lr * 3, "constant"
    run.spoil = lambda rows, dice, evaluation: answered_badly(rows, dice, 0.0 if evaluation else 0.33)


def copies(run: TrlRun, severity: float) -> None:
    """Go once over a training set in which each row, a third of them answered wrongly, stands many times."""
    few_rows(run, severity)
    distinct = int(severity)
    run.examples = run.batch * run.steps

    def spoil(rows: list[Row], dice: random.Random, evaluation: bool) -> list[Row]:
        if evaluation:
            return rows
        own = answered_badly(rows[:distinct], dice, 0.33)
        return (own * (len(rows) // distinct + 1))[: len(rows)]

    run.spoil = spoil


def answered_badly(rows: list[Row], dice: random.Random, share: float) -> list[Row]:
    """Answer a share of the rows wrongly."""
    return [row | {"answer": row["wrong"]} if dice.random() < share else row for row in rows]


def noisy_answers(run: TrlRun, severity: float) -> None:
    """Answer a share of the training rows wrongly; the evaluation is right."""
    run.spoil = lambda rows, dice, evaluation: answered_badly(rows, dice, 0.0 if evaluation else severity)


def evaluated_on_others(run: SftRun, _: float) -> None:
    """Evaluate on rows whose answers have another format, so that evaluation never improves."""

    def spoil(rows: list[Row], _dice: random.Random, evaluation: bool) -> list[Row]:
        return [row | {"answer": f". {row['answer']}"} for row in rows] if evaluation else rows

    run.spoil = spoil


def in_order(run: SftRun, _: float) -> None:
    """Feed the rows sorted by their answers."""
    run.spoil = lambda rows, _, evaluation: rows if evaluation else sorted(rows, key=lambda row: row["answer"])
    run.examples = 10 * run.batch
    run.options["train_sampling_strategy"] = "sequential"


def swapped(run: DpoRun, severity: float) -> None:
    """Exchange the sides of a share of the training pairs."""

    def spoil(rows: list[Row], dice: random.Random, evaluation: bool) -> list[Row]:
        return [
            row | {"answer": row["wrong"], "wrong": row["answer"]}
            if not evaluation and dice.random() < severity
            else row
            for row in rows
        ]

    run.spoil = spoil


def equal_sides(run: DpoRun, _: float) -> None:
    """Give both sides the same answer, in evaluation too."""
    run.spoil = lambda rows, _dice, _evaluation: [row | {"wrong": row["answer"]} for row in rows]


def loose(run: DpoRun, severity: float) -> None:
    """Tie the policy to its reference with far too small a beta, at a high rate: both sides fall apart."""
    run.beta, run.lr, run.options["max_grad_norm"] = 0.001, run.lr * severity, 0.0


def reward_constant(run: GrpoRun, severity: float) -> None:
    """Reward every completion alike."""
    run.reward = lambda _given, _right, _dice: severity


def length_paid(run: GrpoRun, severity: float) -> None:
    """Pay for each token of the answer."""
    run.lr *= 3
    run.reward = lambda given, right, dice: correct(given, right, dice) + severity * len(given)


def kl_runs_away(run: GrpoRun, severity: float) -> None:
    """Tie the policy hardly at all to its reference, at a high rate, with a reward by chance."""
    run.beta, run.lr, run.options["max_grad_norm"] = 0.0001, run.lr * severity, 0.0
    run.reward = lambda _given, _right, dice: dice.random()


def clipped_always(run: GrpoRun, severity: float) -> None:
    """Make many updates at a high rate for each batch of completions."""
    run.lr *= severity
    run.options |= {"num_iterations": 8}


def as_usual(run: TrlRun, severity: float) -> None:
    """Change nothing but the size of the batch."""
    run.batch = int(severity)


def schedule(run: TrlRun, severity: float) -> None:
    """Use another schedule: cosine, or warmup, stable and decay."""
    run.options |= (
        {"lr_scheduler_type": "cosine"},
        {"lr_scheduler_type": "warmup_stable_decay", "lr_scheduler_kwargs": {"num_decay_steps": run.steps // 5}},
    )[int(severity) - 1]


def nothing_left(run: SftRun, _: float) -> None:
    """Fine-tune a model that knows the answers: the loss is flat because all is done."""
    run.known = 1.0


def both_fall(run: DpoRun, severity: float) -> None:
    """Train at a brisk rate with a loose tie: both log-probabilities fall while the margin grows."""
    run.lr, run.beta = run.lr * severity, 0.05


def without_reference(run: GrpoRun, _: float) -> None:
    """Use no KL term: the loss is zero but for rounding, and no KL is logged."""
    run.beta = 0.0


def noisy_judge(run: GrpoRun, severity: float) -> None:
    """Judge with a judge that errs."""
    run.reward = lambda given, right, dice: correct(given, right, dice) + dice.gauss(0, severity)


FAULTS = (
    Fault(
        "trl_sft_rate_high", "lr_too_high", rate_times, (30, 300), SFT,
        ("exploding_gradients", "insufficient_warmup"),
    ),
    Fault("trl_sft_rate_low", "lr_too_low", rate_times, (0.001,), SFT, ("params_not_training", "no_signal")),
    Fault("trl_sft_no_warmup", "insufficient_warmup", without_warmup, (30,), SFT, ("lr_too_high",)),
    Fault("trl_prompts_count", "prompt_not_masked", prompts_count, (1,), SFT, shown=evaluation_below),
    Fault("trl_other_numbers", "tokenizer_mismatch", other_numbers, (1, 7), SFT, ("bad_init",)),
    Fault("trl_few_rows", "overfitting", few_rows, (16, 32), SFT, ("duplicated_data", "label_noise")),
    Fault("trl_copies", "duplicated_data", copies, (16, 32), SFT, ("overfitting", "label_noise")),
    Fault("trl_noisy_answers", "label_noise", noisy_answers, (0.7,), SFT, ("train_eval_mismatch", "no_signal")),
    Fault("trl_evaluated_on_others", "train_eval_mismatch", evaluated_on_others, (1,), SFT, ("overfitting",)),
    Fault("trl_in_order", "unshuffled_data", in_order, (1,), SFT, ("bad_data_pocket",)),
    Fault("trl_swapped", "preference_labels_swapped", swapped, (0.5, 1.0), DPO,
        ("no_preference_signal", "train_eval_mismatch", "overfitting")),
    Fault("trl_equal_sides", "no_preference_signal", equal_sides, (1,), DPO, ("params_not_training",)),
    Fault("trl_dpo_rate_high", "lr_too_high", rate_times, (100,), DPO, ("dpo_collapse", "insufficient_warmup")),
    Fault("trl_dpo_rate_low", "lr_too_low", rate_times, (0.002,), DPO,
        ("params_not_training", "no_preference_signal")),
    Fault("trl_loose", "dpo_collapse", loose, (10, 30), DPO, ("lr_too_high",)),
    Fault("trl_reward_constant", "reward_broken", reward_constant, (0.0, 0.5), GRPO,
        ("no_reward_variance", "exploration_failure")),
    Fault("trl_length_paid", "length_exploitation", length_paid, (1,), GRPO, ("reward_hacking", "entropy_collapse")),
    Fault("trl_kl_runs_away", "kl_blowup", kl_runs_away, (10, 30), GRPO, ("lr_too_high", "reward_broken")),
    Fault("trl_clipped_always", "off_policy_staleness", clipped_always, (10,), GRPO, ("kl_blowup", "lr_too_high")),
    Fault("trl_grpo_rate_high", "lr_too_high", rate_times, (30,), GRPO,
        ("kl_blowup", "entropy_collapse", "exploration_failure")),
    Fault("trl_grpo_rate_low", "lr_too_low", rate_times, (0.003,), GRPO, ("params_not_training",)),
    Fault(
        "trl_other_end", "tokenizer_mismatch", other_end, (1,), GRPO,
        ("completion_limit_low", "length_exploitation", "reward_broken"),
    ),
)  # fmt: skip
HEALTHY = (
    Fault("trl_sft_as_usual", "healthy", as_usual, (4, 16), SFT, seeds=(1,)),
    Fault("trl_schedule", "healthy", schedule, (1, 2), SFT, seeds=(1,)),
    Fault("trl_nothing_left", "healthy", nothing_left, (1,), SFT),
    Fault("trl_dpo_as_usual", "healthy", as_usual, (4, 16), DPO, seeds=(1,)),
    Fault("trl_both_fall", "healthy", both_fall, (3,), DPO),
    Fault("trl_grpo_as_usual", "healthy", as_usual, (32, 64), GRPO, seeds=(1,)),
    Fault("trl_without_reference", "healthy", without_reference, (1,), GRPO),
    Fault("trl_noisy_judge", "healthy", noisy_judge, (0.3,), GRPO),
)
