"""Puzzles with a verifiable answer, and a policy so small that a GRPO run takes seconds.

A prompt is a few digits. A completion is any number of thinking tokens, a mark, the answer and an end token:
`3 1 4` → `. . . = 7 $`. The policy starts from a reference that knows the form and guesses the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn

DIGITS = 8
THINK, MARK, END, NOTHING = range(DIGITS, DIGITS + 4)
WINDOW = 4
"""Tokens of the completion that the policy sees."""


@dataclass(frozen=True)
class Puzzle:
    """What is asked.

    Args:
        name: Its name.
        digits: Digits in the prompt.
        answer: The right answer to prompts, (rows, digits) to (rows,).
        known: Share of right answers that the reference gives.
        longest: Tokens that a completion may have.
        group: Completions for each prompt.
    """

    name: str
    digits: int
    answer: Callable[[Tensor], Tensor]
    known: float = 0.4
    longest: int = 12
    group: int = 8


PUZZLES = (
    Puzzle("grpo_sum", 2, lambda prompts: prompts.sum(dim=1) % DIGITS),
    Puzzle("grpo_span", 3, lambda prompts: prompts.amax(dim=1) - prompts.amin(dim=1), longest=16, group=6),
)


@dataclass(frozen=True)
class Samples:
    """Completions of one step.

    Args:
        prompts: (rows, digits)
        tokens: (rows, longest), `NOTHING` after the end.
        mask: Which tokens count, end token included.
        sampled: Log-probabilities by the weights that sampled.
        ended: Which ended by themselves, (rows,).
    """

    prompts: Tensor
    tokens: Tensor
    mask: Tensor
    sampled: Tensor
    ended: Tensor


Reward = Callable[[Puzzle, Samples, torch.Generator], dict[str, Tensor]]


def answers(samples: Samples) -> Tensor:
    """Return the token before the end token if a mark stands before it, otherwise -1."""
    ended = (samples.tokens == END).any(dim=1)
    end = (samples.tokens == END).int().argmax(dim=1)
    rows = torch.arange(len(samples.tokens))
    marked = samples.tokens[rows, (end - 2).clamp(min=0)] == MARK
    return torch.where(ended & marked & (end >= 2), samples.tokens[rows, (end - 1).clamp(min=0)], -1)


def verified(puzzle: Puzzle, samples: Samples, _: torch.Generator) -> dict[str, Tensor]:
    """Reward the right answer with 1 and the right form with a fifth."""
    given = answers(samples)
    return {"correct": (given == puzzle.answer(samples.prompts)).float(), "format": 0.2 * (given >= 0).float()}


class Policy(nn.Module):
    """Predicts the next token from the prompt, the last tokens, and whether a mark was set."""

    def __init__(self, puzzle: Puzzle, width: int = 64) -> None:
        super().__init__()
        self.token = nn.Embedding(NOTHING + 1, 16)
        self.place = nn.Embedding(puzzle.longest, 8)
        seen = puzzle.digits + WINDOW
        self.body = nn.Sequential(nn.Linear(16 * seen + 8, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.head = nn.Linear(width, NOTHING)

    def forward(self, seen: Tensor, place: Tensor) -> Tensor:
        """Return logits, (..., tokens), for what is seen, (..., digits + window), at places (...)."""
        hidden = torch.cat([self.token(seen).flatten(-2), self.place(place)], dim=-1)
        logits: Tensor = self.head(self.body(hidden))
        return logits


def sights(samples: Samples) -> tuple[Tensor, Tensor]:
    """Return what the policy saw at each token, (rows, longest, digits + window), and the places."""
    rows, longest = samples.tokens.shape
    padded = torch.cat([torch.full((rows, WINDOW), NOTHING), samples.tokens], dim=1)
    windows = padded.unfold(1, WINDOW, 1)[:, :longest]
    prompts = samples.prompts.unsqueeze(1).expand(-1, longest, -1)
    return torch.cat([prompts, windows], dim=-1), torch.arange(longest).expand(rows, -1)


def log_probabilities(policy: Policy, samples: Samples, temperature: float) -> tuple[Tensor, Tensor]:
    """Return the log-probability of each token and the entropy at its place, both (rows, longest)."""
    logs = (policy(*sights(samples)) / temperature).log_softmax(dim=-1)
    chosen = logs.gather(-1, samples.tokens.clamp(max=NOTHING - 1).unsqueeze(-1)).squeeze(-1)
    return chosen, -(logs.exp() * logs).sum(dim=-1)


@torch.no_grad()
def sample(
    policy: Policy, puzzle: Puzzle, prompts: Tensor, temperature: float, generator: torch.Generator, *, stops: bool
) -> Samples:
    """Sample completions as an inference engine does: with logits in bfloat16; `stops` at the end token, or never."""
    rows = len(prompts)
    tokens = torch.full((rows, puzzle.longest + WINDOW), NOTHING)
    sampled, running = torch.zeros(rows, puzzle.longest), torch.ones(rows, dtype=torch.bool)
    mask = torch.zeros(rows, puzzle.longest, dtype=torch.bool)
    for place in range(puzzle.longest):
        seen = torch.cat([prompts, tokens[:, place : place + WINDOW]], dim=1)
        logits = policy(seen, torch.full((rows,), place)).bfloat16().float()
        logs = torch.nan_to_num(logits / temperature, nan=0.0).log_softmax(dim=-1)
        drawn = torch.multinomial(logs.exp(), 1, generator=generator).squeeze(1)
        tokens[:, place + WINDOW] = torch.where(running, drawn, NOTHING)
        sampled[:, place] = logs.gather(1, drawn.unsqueeze(1)).squeeze(1)
        mask[:, place] = running
        running = running & ((drawn != END) | (not stops))
        if not running.any():
            break
    return Samples(prompts, tokens[:, WINDOW:], mask, sampled, ~running)


def demonstrations(puzzle: Puzzle, known: float, thoughts: int, generator: torch.Generator, rows: int) -> Samples:
    """Return completions of the right form, with the right answer in a share of them."""
    prompts = torch.randint(0, DIGITS, (rows, puzzle.digits), generator=generator)
    count = torch.randint(1, thoughts + 1, (rows, 1), generator=generator)
    guess = torch.randint(0, DIGITS, (rows,), generator=generator)
    right = torch.rand(rows, generator=generator) < known
    answer = torch.where(right, puzzle.answer(prompts), guess).unsqueeze(1)
    places = torch.arange(puzzle.longest).expand(rows, -1)
    tokens = torch.full((rows, puzzle.longest), NOTHING)
    for token, where in ((THINK, places < count), (MARK, places == count), (END, places == count + 2)):
        tokens = torch.where(where, token, tokens)
    tokens = torch.where(places == count + 1, answer, tokens)
    whole = torch.ones(rows, dtype=torch.bool)
    return Samples(prompts, tokens, places <= count + 2, torch.zeros(rows, puzzle.longest), whole)


@lru_cache(maxsize=16)
def reference(puzzle: Puzzle, known: float, thoughts: int, seed: int) -> Policy:
    """Return a policy that was fine-tuned on demonstrations."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    policy = Policy(puzzle)
    steps = 400
    optimizer = torch.optim.AdamW(policy.parameters(), 5e-3, weight_decay=0.0)
    decline = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, steps)
    for _ in range(steps):
        shown = demonstrations(puzzle, known, thoughts, generator, 128)
        chosen, _entropy = log_probabilities(policy, shown, 1.0)
        torch.autograd.backward(-chosen[shown.mask].mean())
        optimizer.step()
        optimizer.zero_grad()
        decline.step()
    return policy.requires_grad_(requires_grad=False)
