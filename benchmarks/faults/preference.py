"""DPO on a tiny GPT that answers sums, logged under TRL's names."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.faults.experiment import Record, Settings, Stepwise, Subject
from benchmarks.faults.tasks import DIGITS, Shape, TinyGPT

LENGTH = 10
UNIT = 200.0
"""A model of this size needs a learning rate some hundred times that of a language model. The log tells the rate that a
language model would have, so that it can be judged by what is usual there."""
STYLES = (".", "=", "+")


@dataclass(frozen=True)
class Pairs:
    """Preference pairs.

    Args:
        chosen: Tokens, (pairs, length).
        rejected: Tokens, (pairs, length).
        mask: Which tokens are completion, (pairs, length); it holds for both sides.
    """

    chosen: Tensor
    rejected: Tensor
    mask: Tensor

    def __getitem__(self, rows: Tensor) -> Pairs:
        return Pairs(self.chosen[rows], self.rejected[rows], self.mask[rows])


def line(prompt: str, answer: str) -> list[int]:
    """Return a line of tokens."""
    return [DIGITS.index(character) for character in (prompt + answer).ljust(LENGTH)]


def by_answer(generator: torch.Generator, count: int) -> Pairs:
    """Prefer the right sum to one that is off by a little."""
    chosen, rejected, masks = [], [], []
    for a, b, off in torch.randint(0, 50, (count, 3), generator=generator).tolist():
        prompt, answer = f"{a}+{b}=", f"{a + b}.".rjust(4, " ")
        wrong = f"{a + b + 1 + off % 9}.".rjust(4, " ")
        chosen.append(line(prompt, answer))
        rejected.append(line(prompt, wrong))
        masks.append([len(prompt) <= place < len(prompt) + 4 for place in range(LENGTH)])
    return Pairs(torch.tensor(chosen), torch.tensor(rejected), torch.tensor(masks))


def by_style(generator: torch.Generator, count: int) -> Pairs:
    """Prefer answers that end with a point to those that end otherwise; one pair in ten disagrees."""
    pairs = by_answer(generator, count)
    rejected = pairs.chosen.clone()
    end = LENGTH - 1 - pairs.mask.flip(1).int().argmax(dim=1)
    rows = torch.arange(count)
    rejected[rows, end] = torch.tensor([DIGITS.index(style) for style in STYLES])[1 + rows % 2]
    return swapped(Pairs(pairs.chosen, rejected, pairs.mask), 0.1, generator)


def swapped(pairs: Pairs, share: float, generator: torch.Generator) -> Pairs:
    """Exchange chosen and rejected in a share of the pairs."""
    exchanged = (torch.rand(len(pairs.mask), generator=generator) < share).unsqueeze(1)
    return Pairs(
        torch.where(exchanged, pairs.rejected, pairs.chosen),
        torch.where(exchanged, pairs.chosen, pairs.rejected),
        pairs.mask,
    )


def log_probabilities(model: nn.Module, tokens: Tensor, mask: Tensor) -> Tensor:
    """Return the log-probability of each completion, (pairs,)."""
    logs = model(tokens[:, :-1]).log_softmax(dim=-1)
    chosen = logs.gather(-1, tokens[:, 1:].unsqueeze(-1)).squeeze(-1)
    summed: Tensor = (chosen * mask[:, 1:]).sum(dim=1)
    return summed


def make_model() -> TinyGPT:
    """Return an untrained model."""
    return TinyGPT(len(DIGITS), LENGTH, Shape(width=32, depth=1))


@lru_cache(maxsize=8)
def reference(seed: int) -> TinyGPT:
    """Return a model that was fine-tuned on answers, right and wrong and of any style."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
    decline = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, 400)
    for step in range(400):
        pairs = (by_answer, by_style)[step % 2](generator, 32)
        tokens = torch.cat([pairs.chosen, pairs.rejected])
        torch.autograd.backward(-log_probabilities(model, tokens, pairs.mask.repeat(2, 1)).mean() / 4)
        optimizer.step()
        optimizer.zero_grad()
        decline.step()
    return model.requires_grad_(requires_grad=False)


@dataclass(slots=True, kw_only=True)
class Dpo(Stepwise):
    """A DPO run: the usual settings, and the parts that a fault replaces.

    Args:
        draw: Draws preference pairs.
        examples: Size of the training set, passed through epoch by epoch.
        spoil: Changes the training pairs.
        beta: Scale of the implicit reward.
        follows: Whether the reference is the policy itself.
    """

    formats = ("jsonl", "csv", "trainer_state")
    intervals = (1, 5)
    left_out = ((), (), ("grad_norm",), ("learning_rate", "logits/chosen", "logits/rejected"))

    draw: Callable[[torch.Generator, int], Pairs]
    examples: int = 1600
    batch: int = 16
    spoil: Callable[[Pairs, torch.Generator], Pairs] | None = None
    beta: float = 0.1
    clip: float = 1.0
    warmup: int = 20
    follows: bool = False
    frozen: bool = False
    eval_every: int = 20

    @classmethod
    def usual(cls, draw: Callable[[torch.Generator, int], Pairs], seed: int) -> Dpo:
        """Return the healthy run."""
        return cls(draw=draw, seed=seed, lr=1e-6, steps=200)

    def begin(self) -> Training:
        """Return the model before its first step."""
        return Training(self)

    def settings(self) -> Settings:
        """Return the settings of TRL's DPOConfig."""
        return {
            "trainer_type": "dpo",
            "learning_rate": self.lr,
            "max_steps": self.steps,
            "warmup_steps": self.warmup,
            "max_grad_norm": self.clip,
            "per_device_train_batch_size": self.batch,
            "beta": self.beta,
            **self.config,
        }


class Training:
    """A policy on its way from its reference: updates, evaluations and records, step by step."""

    def __init__(self, run: Dpo) -> None:
        self.run = run
        self.reference = reference(run.seed)
        self.policy = copy.deepcopy(self.reference).requires_grad_(not run.frozen)
        trained = [parameter for parameter in self.policy.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.AdamW(trained or [nn.Parameter(torch.zeros(1))], weight_decay=0.0)
        self.generator = torch.Generator().manual_seed(run.seed)
        self.pairs = run.draw(self.generator, run.examples)
        if run.spoil:
            self.pairs = run.spoil(self.pairs, self.generator)
        self.held_out = run.draw(torch.Generator().manual_seed(10_000 + run.seed), 64)
        self.order = torch.empty(0, dtype=torch.long)

    def step(self, step: int) -> Record:
        """Make an update and return its record."""
        run = self.run
        rate = run.lr * min(1.0, (step + 1) / max(1, run.warmup)) * (1 - step / run.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = UNIT * rate
        loss, record = self._judge(self._batch())
        if loss.requires_grad:
            torch.autograd.backward(loss)
        gradients = [parameter.grad for parameter in self.policy.parameters() if parameter.grad is not None]
        norm = nn.utils.clip_grad_norm_(self.policy.parameters(), run.clip or 1e9).item() if gradients else 0.0
        self.optimizer.step()
        self.optimizer.zero_grad()
        record |= {"step": step + 1.0, "grad_norm": norm, "learning_rate": rate}
        record["epoch"] = (step + 1) * run.batch / run.examples
        if (step + 1) % run.eval_every == 0:
            with torch.no_grad():
                _, held_out = self._judge(self.held_out)
            record |= {f"eval_{name}": value for name, value in held_out.items()}
        return record

    def _batch(self) -> Pairs:
        if len(self.order) < self.run.batch:
            self.order = torch.randperm(self.run.examples, generator=self.generator)
        rows, self.order = self.order[: self.run.batch], self.order[self.run.batch :]
        return self.pairs[rows]

    def _judge(self, pairs: Pairs) -> tuple[Tensor, Record]:
        both, mask = torch.cat([pairs.chosen, pairs.rejected]), pairs.mask.repeat(2, 1)
        now = log_probabilities(self.policy, both, mask)
        with torch.no_grad():
            then = now if self.run.follows else log_probabilities(self.reference, both, mask)
        logs = now.detach().chunk(2)
        rewards = (self.run.beta * (now - then.detach())).chunk(2)
        margin = rewards[0] - rewards[1]
        loss = -functional.logsigmoid(margin).mean()
        return loss, {
            "loss": loss.item(),
            "rewards/chosen": rewards[0].mean().item(),
            "rewards/rejected": rewards[1].mean().item(),
            "rewards/accuracies": (margin > 0).float().mean().item(),
            "rewards/margins": margin.mean().item(),
            "logps/chosen": logs[0].mean().item(),
            "logps/rejected": logs[1].mean().item(),
        }


SUBJECTS = (
    Subject("dpo_style", partial(Dpo.usual, by_style), tuning=True),
    Subject("dpo_answer", partial(Dpo.usual, by_answer), tuning=False),
)
