"""GRPO on puzzles with a verifiable answer, logged under TRL's names."""

from __future__ import annotations

import copy
from collections import deque
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.faults.experiment import Record, Settings, Stepwise, Subject
from benchmarks.faults.puzzles import (
    DIGITS,
    PUZZLES,
    Policy,
    Puzzle,
    Reward,
    Samples,
    log_probabilities,
    reference,
    sample,
    verified,
)  # fmt: skip

UNIT = 1000.0
"""A policy of this size needs a learning rate about a thousand times that of a language model. The log tells the rate
that a language model would have, so that it can be judged by what is usual there."""


@dataclass(slots=True, kw_only=True)
class Grpo(Stepwise):
    """A GRPO run: the usual settings, and the parts that a fault replaces.

    Args:
        puzzle: What is asked.
        prompts: Prompts per step, each with a group of completions.
        known: Share of right answers that the reference gives.
        thoughts: Thinking tokens that the reference uses at most.
        beta: Weight of the KL divergence to the reference; TRL logs no KL where it is 0.
        bonus: Weight of the entropy in what is maximised.
        iterations: Updates for each batch of completions.
        stops: Whether sampling stops at the end token of the policy.
        lag: Steps between the weights that sample and those that are trained.
        reward: The reward function, one part by name.
        true_every: Steps between evaluations by the true reward; 0 for none.
    """

    formats = ("jsonl", "csv", "trainer_state")
    intervals = (1,)
    left_out = ((), (), ("grad_norm",), ("learning_rate", "num_tokens", "clip_ratio/region_mean"))

    puzzle: Puzzle
    prompts: int = 8
    known: float = 0.0
    thoughts: int = 4
    group: int = 0
    beta: float = 0.04
    bonus: float = 0.0
    temperature: float = 1.0
    iterations: int = 1
    stops: bool = True
    lag: int = 0
    clip: float = 1.0
    warmup: int = 10
    frozen: bool = False
    reward: Reward = verified
    true_every: int = 0

    @classmethod
    def usual(cls, puzzle: Puzzle, seed: int) -> Grpo:
        """Return the healthy run of a puzzle."""
        return cls(puzzle=puzzle, seed=seed, lr=3e-6, steps=200, known=puzzle.known, group=puzzle.group)

    def begin(self) -> Training:
        """Return the model before its first step."""
        return Training(self)

    def settings(self) -> Settings:
        """Return the settings of TRL's GRPOConfig."""
        return {
            "trainer_type": "grpo",
            "learning_rate": self.lr,
            "max_steps": self.steps,
            "warmup_steps": self.warmup,
            "max_grad_norm": self.clip,
            "beta": self.beta,
            "num_generations": self.group,
            "num_iterations": self.iterations,
            "temperature": self.temperature,
            "max_completion_length": self.puzzle.longest,
            **self.config,
        }


class Training:
    """A policy on its way: samples, rewards, updates and records, step by step."""

    def __init__(self, run: Grpo) -> None:
        self.run = run
        self.reference = reference(run.puzzle, run.known, run.thoughts, run.seed)
        self.policy = copy.deepcopy(self.reference).requires_grad_(not run.frozen)
        trained = [parameter for parameter in self.policy.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.AdamW(trained or [nn.Parameter(torch.zeros(1))], weight_decay=0.0)
        self.generator = torch.Generator().manual_seed(run.seed)
        torch.manual_seed(run.seed)
        self.past: deque[Policy] = deque(maxlen=run.lag + 1)
        self.tokens = 0.0

    def step(self, step: int) -> Record:
        """Sample, reward, update, and return the record."""
        run = self.run
        rate = run.lr * min(1.0, (step + 1) / max(1, run.warmup)) * (1 - step / run.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = UNIT * rate
        self.past.append(copy.deepcopy(self.policy) if run.lag else self.policy)
        samples = self._sample(self.past[0], self.generator)
        parts = run.reward(run.puzzle, samples, self.generator)
        total = torch.stack(list(parts.values())).sum(dim=0)
        groups = total.view(run.prompts, run.group)
        advantage = ((groups - groups.mean(dim=1, keepdim=True)) / (groups.std(dim=1, keepdim=True) + 1e-4)).flatten()
        record: Record = {"step": step + 1.0}
        with torch.no_grad():
            before, _ = log_probabilities(self.policy, samples, run.temperature)
        for _ in range(run.iterations):
            record |= self._update(samples, advantage, before)
        record["learning_rate"] = rate
        record |= {f"rewards/{name}/mean": part.mean().item() for name, part in parts.items()}
        record |= described(groups, samples, before)
        self.tokens += record["completions/mean_length"] * len(total) + samples.prompts.numel()
        record["num_tokens"] = self.tokens
        if run.true_every and (step + 1) % run.true_every == 0:
            record["eval_reward"] = self._true_reward()
        return record

    def _sample(self, policy: Policy, generator: torch.Generator) -> Samples:
        run = self.run
        prompts = torch.randint(0, DIGITS, (run.prompts, run.puzzle.digits), generator=generator)
        rows = prompts.repeat_interleave(run.group, 0)
        return sample(policy, run.puzzle, rows, run.temperature, generator, stops=run.stops)

    def _update(self, samples: Samples, advantage: Tensor, before: Tensor) -> Record:
        run, mask = self.run, samples.mask
        chosen, entropy = log_probabilities(self.policy, samples, run.temperature)
        ratio = (chosen - before).exp()
        gain = torch.min(ratio * advantage.unsqueeze(1), ratio.clamp(0.8, 1.2) * advantage.unsqueeze(1))
        with torch.no_grad():
            expected, _ = log_probabilities(self.reference, samples, run.temperature)
        apart = expected - chosen
        kl = apart.exp() - apart - 1
        loss = (-gain + run.beta * kl - run.bonus * entropy)[mask].mean()
        if loss.requires_grad:
            torch.autograd.backward(loss)
        gradients = [parameter.grad for parameter in self.policy.parameters() if parameter.grad is not None]
        norm = nn.utils.clip_grad_norm_(self.policy.parameters(), run.clip or 1e9).item() if gradients else 0.0
        self.optimizer.step()
        self.optimizer.zero_grad()
        clipped = ((ratio - 1).abs() > 0.2) & mask
        record = {"loss": loss.item(), "grad_norm": norm, "entropy": entropy[mask].mean().item()}
        if run.beta:
            record["kl"] = kl[mask].mean().item()
        return record | {"clip_ratio/region_mean": clipped.sum().item() / mask.sum().item()}

    def _true_reward(self) -> float:
        samples = self._sample(self.policy, torch.Generator().manual_seed(10_000 + self.run.seed))
        return verified(self.run.puzzle, samples, self.generator)["correct"].mean().item()


def described(groups: Tensor, samples: Samples, before: Tensor) -> Record:
    """Return what TRL logs of rewards, (prompts, group), of completions, and of the weights that sampled."""
    length = samples.mask.sum(dim=1).float()
    spread = groups.std(dim=1)
    apart = (before - samples.sampled)[samples.mask]
    return {
        "reward": groups.mean().item(),
        "reward_std": spread.mean().item(),
        "frac_reward_zero_std": (spread < 1e-6).float().mean().item(),
        "completions/mean_length": length.mean().item(),
        "completions/max_length": length.max().item(),
        "completions/clipped_ratio": 1 - samples.ended.float().mean().item(),
        "sampling/sampling_logp_difference/mean": apart.abs().mean().item(),
        "sampling/importance_sampling_ratio/min": apart.exp().clamp(max=2.0).min().item(),
        "sampling/importance_sampling_ratio/mean": apart.exp().clamp(max=2.0).mean().item(),
    }


SUBJECTS = tuple(
    Subject(puzzle.name, partial(Grpo.usual, puzzle), tuning)
    for puzzle, tuning in zip(PUZZLES, (True, False), strict=True)
)
