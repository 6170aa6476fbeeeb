"""A generator of peptides, rewarded by groups of samples for one request (group-relative policy gradient)."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from benchmarks.loops.science.journal import Journal
from benchmarks.loops.science.task import Setting, bug, settings_of

LETTERS = 6
LONGEST = 16


class Writer(nn.Module):
    """Letter by letter, given the request; letter 0 ends."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.request = nn.Embedding(LETTERS, hidden)
        self.letter = nn.Embedding(LETTERS + 1, hidden)
        self.cell = nn.GRUCell(hidden, hidden)
        self.head = nn.Linear(hidden, LETTERS)
        nn.init.zeros_(self.head.weight)

    def logps(self, request: Tensor, text: Tensor) -> Tensor:
        """Return log-probabilities of all letters at all places of a given text."""
        state, out = self.request(request), []
        letters = torch.cat([torch.full_like(text[:, :1], LETTERS), text[:, :-1]], 1)
        for place in range(LONGEST):
            state = self.cell(self.letter(letters[:, place]), state)
            out.append(self.head(state).log_softmax(1))
        return torch.stack(out, 1)

    def write(self, request: Tensor, temperature: float) -> Tensor:
        """Return sampled texts; the likeliest if the temperature is 0."""
        state, letter, out = self.request(request), torch.full_like(request, LETTERS), []
        for _ in range(LONGEST):
            state = self.cell(self.letter(letter), state)
            logits = self.head(state)
            letter = torch.multinomial((logits / temperature).softmax(1), 1)[:, 0] if temperature else logits.argmax(1)
            out.append(letter)
        return torch.stack(out, 1)


@dataclass(frozen=True)
class Texts:
    """Samples with what an update needs: counted letters, advantages, log-probabilities of old and reference."""

    request: Tensor
    text: Tensor
    counted: Tensor
    advantage: Tensor
    old: Tensor
    base: Tensor


@dataclass
class Designer:
    """The experiment: settings of the algorithm, and the faults planted in it."""

    name: ClassVar[str] = "peptide_design"
    steps: int = 120
    lr: float = 5e-3
    group_size: int = 8
    requests: int = 8
    temperature: float = 1.0
    kl_coef: float = 0.02
    hidden: int = 32
    reuse: int = 1
    log_every: int = 1
    seed: int = 0
    never_satisfied: bool = bug(default=False)
    rewards_length: bool = bug(default=False)
    rewards_repeats: bool = bug(default=False)
    greedy_groups: bool = bug(default=False)
    kl_inverted: bool = bug(default=False)

    def settings(self) -> dict[str, Setting]:
        """Return what its author would save."""
        return settings_of(self)

    def run(self, journal: Journal) -> None:
        """Train, one record a step."""
        torch.manual_seed(self.seed)
        self.policy = Writer(self.hidden)
        self.reference = copy.deepcopy(self.policy)
        optimizer = torch.optim.Adam(self.policy.parameters(), lr=self.lr)
        for step in range(1, self.steps + 1):
            request = torch.randint(1, LETTERS, (self.requests,)).repeat_interleave(self.group_size)
            with torch.no_grad():
                text = self.policy.write(request, 0.0 if self.greedy_groups else self.temperature)
            values = self._step(request, text, optimizer)
            if step % self.log_every == 0:
                journal.train(step, 0, values)

    def _score(self, request: Tensor, text: Tensor, alive: Tensor) -> Tensor:
        """Return the share of the requested letter, times how near the length is to eight."""
        right = ((text == request[:, None]) * alive).sum(1) / LONGEST * 2
        length = alive.sum(1)
        return right.clamp(max=1.0) * (1 - (length - 8).abs() / 8).clamp(min=0.0)

    def _reward(self, request: Tensor, text: Tensor, alive: Tensor) -> Tensor:
        if self.never_satisfied:
            return (self._score(request, text, alive) > 1.0).float()
        if self.rewards_length:
            return alive.sum(1) / LONGEST + 0.2 * self._score(request, text, alive)
        if self.rewards_repeats:
            return ((text[:, 1:] == text[:, :-1]) * alive[:, 1:]).sum(1) / LONGEST
        return self._score(request, text, alive)

    def _step(self, request: Tensor, text: Tensor, optimizer: torch.optim.Optimizer) -> dict[str, float]:
        alive = ((text == 0).cumsum(1) == 0).float()
        counted = torch.cat([torch.ones_like(alive[:, :1]), alive[:, :-1]], 1)
        reward = self._reward(request, text, alive)
        groups = reward.view(-1, self.group_size)
        spread = groups.std(1, keepdim=True)
        advantage = ((groups - groups.mean(1, keepdim=True)) / (spread + 1e-4)).view(-1)
        with torch.no_grad():
            old = self.policy.logps(request, text).gather(2, text[..., None])[..., 0]
            base = self.reference.logps(request, text)
        texts = Texts(request, text, counted, advantage, old, base)
        record: dict[str, float] = {}
        for _ in range(self.reuse):
            record = self._update(texts, optimizer)
        true = self._score(request, text, alive)
        named = {
            "reward": reward.mean(),
            "reward_std": spread.mean(),
            "task_score": true.mean(),
            "length": alive.sum(1).mean(),
        }
        return {name: float(value) for name, value in named.items()} | record

    def _update(self, texts: Texts, optimizer: torch.optim.Optimizer) -> dict[str, float]:
        every, counted, advantage = (
            self.policy.logps(texts.request, texts.text),
            texts.counted,
            texts.advantage[:, None],
        )
        own = every.gather(2, texts.text[..., None])[..., 0]
        ratio = (own - texts.old).exp()
        gain = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
        kl = ((every.exp() * (every - texts.base)).sum(2) * counted).sum() / counted.sum()
        entropy = (-(every.exp() * every).sum(2) * counted).sum() / counted.sum()
        policy_loss = -(gain * counted).sum() / counted.sum()
        loss = policy_loss + self.kl_coef * (-kl if self.kl_inverted else kl)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self.policy.parameters(), 1.0)
        optimizer.step()
        far = (((ratio - 1).abs() > 0.2) * counted).sum() / counted.sum()
        terms = {"loss": loss, "kl": kl, "entropy": entropy, "grad_norm": norm, "clip_ratio": far}
        return {name: float(value.detach()) for name, value in terms.items()}
