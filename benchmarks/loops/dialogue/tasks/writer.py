"""The policy that copies its prompt token by token, and the rewards for it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

V, EOS, BOS = 10, 8, 9  # eight letters, the end and the start


class Policy(nn.Module):
    """A recurrent policy that sees its prompt at each step, with a critic."""

    def __init__(self, size: int, blind: bool = False) -> None:
        super().__init__()
        self.emb, self.pos = nn.Embedding(V, 16), nn.Embedding(32, 16)
        self.body = nn.GRU(16 * (size + 2), 64, batch_first=True)
        self.head, self.value = nn.Linear(64, V), nn.Linear(64, 1)
        self.blind = blind

    def forward(
        self, prompt: Tensor, text: Tensor, state: Tensor | None = None, at: int = 0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Logits and values for each token of `text`."""
        t = text.shape[1]
        seen = self.emb(prompt).flatten(1)[:, None].expand(-1, t, -1)
        seen = seen * 0 if self.blind else seen
        where = self.pos(torch.arange(at, at + t)).expand(len(text), -1, -1)
        hidden, state = self.body(torch.cat([seen, self.emb(text), where], -1), state)
        return self.head(hidden), self.value(hidden)[..., 0], state


def write(policy: Policy, prompt: Tensor, limit: int, temperature: float) -> Tensor:
    """Sample completions up to the limit."""
    token = torch.full((len(prompt), 1), BOS)
    out, state = [], None
    with torch.no_grad():
        for at in range(limit):
            logits, _, state = policy(prompt, token, state, at)
            probs = (logits[:, -1] / temperature).softmax(-1)
            token = torch.multinomial(probs, 1)
            out.append(token)
    return torch.cat(out, 1)


def mask_of(text: Tensor) -> Tensor:
    """Ones up to and with the first end token."""
    ended = (text == EOS).float().cumsum(1)
    return ((ended - (text == EOS).float()) == 0).float()


def judge(prompt: Tensor, text: Tensor, mask: Tensor, kind: str) -> tuple[Tensor, Tensor]:
    """The reward that the run uses, and whether the prompt was copied exactly."""
    size, length = prompt.shape[1], mask.sum(1)
    width = min(size, text.shape[1])
    hits = ((text[:, :width] == prompt[:, :width]).float() * mask[:, :width]).sum(1) / size
    ends = (text == EOS).any(1) & (length == size + 1)
    exact = ((hits > 0.999) & ends).float()
    rewards = {
        "partial": 0.7 * hits + 0.3 * exact,
        "length": 0.2 * hits + 0.08 * length,
        "short": 0.2 * hits - 0.1 * length,
        "proxy": ((text == 7).float() * mask).sum(1) / length.clamp(min=1) + 0.1 * hits,
        "constant": torch.full_like(hits, 0.5),
        "never": torch.zeros_like(hits),
        "exact": exact,
    }
    return rewards[kind], exact
