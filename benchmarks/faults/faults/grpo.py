"""Faults of GRPO runs: of the reward, of the policy, of its distance from reference and sampler."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from benchmarks.faults.faults.fault import Fault
from benchmarks.faults.grpo import Grpo
from benchmarks.faults.puzzles import DIGITS, MARK, Puzzle, Samples, verified

TASKS = ("grpo_sum", "grpo_span")


def reward_constant(run: Grpo, severity: float) -> None:
    """Reward every completion alike: with nothing, or with something."""
    value = (0.0, 0.5)[int(severity) - 1]
    run.reward = lambda _puzzle, samples, _generator: {"correct": torch.full((len(samples.tokens),), value)}


def reward_reads_wrong_column(run: Grpo, _: float) -> None:
    """Compare the answer with that of another prompt."""

    def reward(puzzle: Puzzle, samples: Samples, generator: torch.Generator) -> dict[str, Tensor]:
        shuffled = torch.randperm(len(samples.prompts), generator=generator)
        other = replace(samples, prompts=samples.prompts[shuffled])
        return {"correct": verified(puzzle, other, generator)["correct"]}

    run.reward = reward


def groups_agree(run: Grpo, severity: float) -> None:
    """Ask what the policy always solves, or let the prompt alone decide on the reward."""
    if severity == 1:
        run.known, run.temperature, run.thoughts = 1.0, 0.4, 1
        return

    def reward(_puzzle: Puzzle, samples: Samples, _generator: torch.Generator) -> dict[str, Tensor]:
        return {"correct": (samples.prompts[:, 0] < DIGITS // 2).float()}

    run.reward = reward


def entropy_pressed_down(run: Grpo, severity: float) -> None:
    """Take the entropy bonus with the wrong sign, so that the policy becomes deterministic before it has learnt."""
    run.bonus, run.beta = -severity, 0.001


def kl_runs_away(run: Grpo, severity: float) -> None:
    """Tie the policy too loosely to its reference, at a high rate with several updates per batch."""
    run.beta, run.lr, run.bonus, run.iterations = 0.0001, run.lr * severity, 0.3, 4


def stale_samples(run: Grpo, severity: float) -> None:
    """Sample from weights that are many steps old."""
    run.lag, run.lr, run.iterations, run.beta = int(severity), run.lr * 2, 2, 0.001


def length_paid(run: Grpo, severity: float) -> None:
    """Pay for each token, or for each token saved."""

    def reward(puzzle: Puzzle, samples: Samples, generator: torch.Generator) -> dict[str, Tensor]:
        length = samples.mask.sum(dim=1).float()
        return verified(puzzle, samples, generator) | {"length": severity * length / puzzle.longest}

    run.reward, run.beta = reward, 0.02


def proxy_paid(run: Grpo, severity: float) -> None:
    """Pay for marks, which the grader counts, far better than for right answers; evaluate by the true reward."""

    def reward(puzzle: Puzzle, samples: Samples, generator: torch.Generator) -> dict[str, Tensor]:
        marks = (samples.tokens == MARK).float().mean(dim=1)
        return verified(puzzle, samples, generator) | {"style": severity * marks}

    run.reward, run.beta, run.true_every = reward, 0.02, 10


def rate_times(run: Grpo, severity: float) -> None:
    """Multiply the learning rate."""
    run.lr *= severity
    run.warmup = 1 if severity > 1 else run.warmup


def frozen(run: Grpo, _: float) -> None:
    """Train no parameter."""
    run.frozen = True


def never_found(run: Grpo, _: float) -> None:
    """Reward only an answer that the reference never gives."""

    def reward(puzzle: Puzzle, samples: Samples, generator: torch.Generator) -> dict[str, Tensor]:
        marks = (samples.tokens == MARK).sum(dim=1) >= 4
        return {"correct": verified(puzzle, samples, generator)["correct"] * marks}

    run.reward = reward


def other_end_token(run: Grpo, severity: float) -> None:
    """Sample with a tokenizer whose end token is not the policy's: what follows the answer is babble up to the limit.

    A severity of 2: the grader, which expects the answer at the end, finds none.
    """
    run.stops = False
    if severity > 1:
        run.reward = lambda _puzzle, samples, _generator: {"correct": torch.zeros(len(samples.tokens))}


def as_usual(run: Grpo, severity: float) -> None:
    """Change nothing but the number of prompts per step."""
    run.prompts = int(severity)
    run.true_every = 20


def without_reference(run: Grpo, _: float) -> None:
    """Use no KL term: the loss is zero but for rounding, and no KL is logged."""
    run.beta = 0.0


def noisy_reward(run: Grpo, severity: float) -> None:
    """Judge with a judge that errs."""

    def reward(puzzle: Puzzle, samples: Samples, generator: torch.Generator) -> dict[str, Tensor]:
        judged = verified(puzzle, samples, generator)
        noise = severity * torch.randn(len(samples.tokens), generator=generator)
        return {"judge": judged["correct"] + noise, "format": judged["format"]}

    run.reward = reward


def long_thoughts(run: Grpo, severity: float) -> None:
    """Start from a reference whose length varies much, so that the mean length wanders."""
    run.thoughts = int(severity)


def several_updates(run: Grpo, severity: float) -> None:
    """Make several clipped updates for each batch of completions."""
    run.iterations, run.lr = int(severity), run.lr / 2


FAULTS = (
    Fault(
        "reward_constant", "reward_broken", reward_constant, (1, 2), TASKS,
        ("no_reward_variance", "exploration_failure"),
    ),
    Fault(
        "wrong_column", "reward_broken", reward_reads_wrong_column, (1,), TASKS,
        ("exploration_failure", "lr_too_low"),
    ),
    Fault("groups_agree", "no_reward_variance", groups_agree, (1, 2), TASKS, ("reward_broken", "entropy_collapse")),
    Fault(
        "entropy_pressed_down", "entropy_collapse", entropy_pressed_down, (0.5, 2.0), TASKS,
        ("no_reward_variance", "exploration_failure"),
    ),
    Fault("kl_runs_away", "kl_blowup", kl_runs_away, (3, 10), TASKS, ("lr_too_high",)),
    Fault("stale_samples", "off_policy_staleness", stale_samples, (30, 60), TASKS, ("kl_blowup",)),
    Fault("longer_paid", "length_exploitation", length_paid, (0.6, 2), TASKS, ("reward_hacking", "entropy_collapse")),
    Fault("shorter_paid", "length_exploitation", length_paid, (-1, -3), TASKS, ("reward_hacking", "entropy_collapse")),
    Fault(
        "proxy_paid", "reward_hacking", proxy_paid, (5, 20), TASKS,
        ("length_exploitation", "kl_blowup", "entropy_collapse"),
    ),
    Fault(
        "grpo_rate_high", "lr_too_high", rate_times, (10, 30), TASKS,
        ("kl_blowup", "entropy_collapse", "exploration_failure"),
    ),
    Fault(
        "grpo_rate_low", "lr_too_low", rate_times, (0.003,), TASKS,
        ("exploration_failure", "params_not_training", "reward_broken"),
    ),
    Fault("grpo_frozen", "params_not_training", frozen, (1,), TASKS, ("lr_too_low",)),
    Fault(
        "other_end_token", "tokenizer_mismatch", other_end_token, (1, 2), TASKS,
        ("completion_limit_low", "length_exploitation"), (1, 2),
    ),
    Fault(
        "never_found", "exploration_failure", never_found, (1,), TASKS, ("reward_broken", "no_reward_variance")
    ),
)  # fmt: skip
HEALTHY = (
    Fault("grpo_as_usual", "healthy", as_usual, (6, 8, 12), TASKS),
    Fault("without_reference", "healthy", without_reference, (1,), TASKS),
    Fault("noisy_reward", "healthy", noisy_reward, (0.1, 0.3), TASKS),
    Fault("long_thoughts", "healthy", long_thoughts, (6,), TASKS),
    Fault("several_updates", "healthy", several_updates, (2,), TASKS),
)
