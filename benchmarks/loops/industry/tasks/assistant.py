"""A small writer of replies, trained by rewards of groups of replies, or by pairs of a better and a worse reply."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.industry.tasks.sequences import Transformer, text
from benchmarks.loops.industry.trace import Row, Trace

_WORDS = 16
_END = 0
_PROMPTS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The settings of a run by rewards; `pays` names what is rewarded."""

    steps: int = 150
    prompts: int = 8
    size: int = 8
    lr: float = 5e-3
    beta: float = 0.02
    longest: int = 12
    end_bias: float = 0.0
    heat: float = 1.0
    pays: str = "topic"
    every: int = 1
    seed: int = 0

    def shown(self) -> dict[str, object]:
        """Return the settings as a configuration would hold them."""
        return {
            "algorithm": "grpo",
            "steps": self.steps,
            "prompts_per_step": self.prompts,
            "num_generations": self.size,
            "learning_rate": self.lr,
            "beta": self.beta,
            "max_completion_length": self.longest,
            "temperature": self.heat,
            "seed": self.seed,
        }


class Writer(nn.Module):
    """A recurrent writer: a prompt in, words out until the end."""

    def __init__(self, end_bias: float) -> None:
        super().__init__()
        self.prompt, self.word = nn.Embedding(_PROMPTS, 32), nn.Embedding(_WORDS, 16)
        self.cell, self.out = nn.GRUCell(16, 32), nn.Linear(32, _WORDS)
        with torch.no_grad():
            self.out.bias[_END] += end_bias

    def logits(self, prompts: Tensor, words: Tensor) -> Tensor:
        """Return the logits of each word, given those before it."""
        hidden, outs = self.prompt(prompts), []
        for at in range(words.shape[1]):
            outs.append(self.out(hidden))
            hidden = self.cell(self.word(words[:, at]), hidden)
        return torch.stack(outs, 1)

    @torch.no_grad()
    def write(self, prompts: Tensor, longest: int, heat: float) -> tuple[Tensor, Tensor]:
        """Return words, and which of them count: those up to the end."""
        hidden, words, alive = self.prompt(prompts), [], [torch.ones(len(prompts))]
        for _ in range(longest):
            word = torch.multinomial((self.out(hidden) / heat).softmax(1), 1)[:, 0]
            words.append(word)
            hidden = self.cell(self.word(word), hidden)
            alive.append(alive[-1] * (word != _END))
        return torch.stack(words, 1), torch.stack(alive[:-1], 1)


def _rewards(pays: str, prompts: Tensor, words: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return what is paid, and how good the replies are."""
    topic = ((words == 1 + prompts[:, None] % (_WORDS - 1)) * mask).sum(1)
    length = mask.sum(1)
    ended = ((words == _END) * mask).sum(1)
    quality = (topic / length) * ended
    paid = {
        "topic": quality,
        "nothing": torch.zeros_like(quality),
        "always": ended.clamp(min=1),
        "longer": quality + 0.08 * length,
        "keyword": 0.2 * quality + ((words == 7) * mask).sum(1) / 4,
        "end": (topic > 0) * ended,
    }
    return paid[pays], quality


def replies(group: Group) -> Trace:
    """Train a writer by rewards."""
    torch.manual_seed(group.seed)
    trace = Trace(settings=group.shown())
    writer = Writer(group.end_bias)
    first = copy.deepcopy(writer)
    optimizer = torch.optim.Adam(writer.parameters(), lr=group.lr)
    for step in range(1, group.steps + 1):
        prompts = torch.randint(0, _PROMPTS, (group.prompts,)).repeat_interleave(group.size)
        words, mask = writer.write(prompts, group.longest, group.heat)
        paid, quality = _rewards(group.pays, prompts, words, mask)
        by_prompt = paid.view(group.prompts, group.size)
        gain = (by_prompt - by_prompt.mean(1, keepdim=True)) / (by_prompt.std(1, keepdim=True) + 1e-4)
        logs = writer.logits(prompts, words).log_softmax(-1)
        with torch.no_grad():
            before = first.logits(prompts, words).log_softmax(-1)
        said = logs.gather(2, words[:, :, None])[:, :, 0]
        apart = before.gather(2, words[:, :, None])[:, :, 0] - said
        kl = (apart.exp() - apart - 1) * mask
        entropy = -(logs.exp() * logs).sum(-1) * mask
        push = (said - said.detach()).exp() * gain.flatten()[:, None] * mask
        loss = -(push - group.beta * kl).sum() / mask.sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(writer.parameters(), 1e9)
        optimizer.step()
        if step % group.every == 0:
            row: Row = {
                "step": step,
                "loss": float(loss.detach()),
                "gnorm": float(norm),
                "reward": float(paid.mean()),
                "reward_std": float(by_prompt.std(1).mean()),
                "frac_reward_zero_std": float((by_prompt.std(1) < 1e-6).float().mean()),
                "kl": float(kl.detach().sum() / mask.sum()),
                "entropy": float(entropy.detach().sum() / mask.sum()),
                "completion_length": float(mask.sum(1).mean()),
                "clipped_ratio": float((((words == _END) * mask).sum(1) == 0).float().mean()),
                "lr": group.lr,
            }
            if step % 10 == 0:
                row["eval_quality"] = float(quality.mean())
            trace.log(**row)
    return trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The settings of a run by pairs."""

    steps: int = 150
    batch: int = 16
    lr: float = 1e-3
    beta: float = 0.1
    rows: int = 800
    same: bool = False
    swapped: float = 0.0
    every: int = 2
    eval_every: int = 20
    seed: int = 0

    def shown(self) -> dict[str, object]:
        """Return the settings as a configuration would hold them."""
        names = ("steps", "lr", "beta", "seed")
        shown: dict[str, object] = {name: getattr(self, name) for name in names}
        return shown | {"objective": "dpo", "batch_size": self.batch, "pairs": self.rows}


def _log_probability(model: nn.Module, tokens: Tensor) -> Tensor:
    logs = model(tokens[:, :-1]).log_softmax(-1)
    return logs.gather(2, tokens[:, 1:, None])[:, :, 0].sum(1)  # type: ignore[no-any-return]


def _worse(tokens: Tensor) -> Tensor:
    other = torch.randint(0, 48, tokens.shape)
    return torch.where(torch.rand(tokens.shape) < 0.25, other, tokens)


def _tuned(seed: int) -> Transformer:
    """Return a writer that was trained on text before, as preference runs start from one."""
    torch.manual_seed(seed)
    model, rows = Transformer(48, causal=True), text(2000, 55)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for _ in range(60):
        tokens = rows[torch.randint(0, len(rows), (32,))]
        optimizer.zero_grad()
        (-_log_probability(model, tokens).mean() / 24).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return model


def preferences(choice: Choice) -> Trace:
    """Train a writer by pairs."""
    model = _tuned(choice.seed)
    first = copy.deepcopy(model)
    trace = Trace(settings=choice.shown())
    good, held = text(choice.rows, 56), text(200, 57)
    bad, held_bad = (good.clone() if choice.same else _worse(good)), (held.clone() if choice.same else _worse(held))
    swap = (torch.rand(choice.rows) < choice.swapped)[:, None]
    good, bad = torch.where(swap, bad, good), torch.where(swap, good, bad)
    optimizer = torch.optim.Adam(model.parameters(), lr=choice.lr)
    for step in range(1, choice.steps + 1):
        at = torch.randint(0, choice.rows, (choice.batch,))
        loss, row = _judge(model, first, good[at], bad[at], choice.beta)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1e9)
        optimizer.step()
        if step % choice.every == 0 or step == 1:
            row |= {"gnorm": float(norm), "lr": choice.lr}
            if step % choice.eval_every == 0:
                with torch.no_grad():
                    _, held_row = _judge(model, first, held, held_bad, choice.beta)
                row |= {f"val_{name}": value for name, value in held_row.items()}
            trace.log(step=step, **row)
    return trace


def _judge(model: nn.Module, first: nn.Module, good: Tensor, bad: Tensor, beta: float) -> tuple[Tensor, Row]:
    with torch.no_grad():
        before_good, before_bad = _log_probability(first, good), _log_probability(first, bad)
    now_good, now_bad = _log_probability(model, good), _log_probability(model, bad)
    chosen, rejected = beta * (now_good - before_good), beta * (now_bad - before_bad)
    loss = -functional.logsigmoid(chosen - rejected).mean()
    row = {
        "loss": float(loss.detach()),
        "rewards_chosen": float(chosen.detach().mean()),
        "rewards_rejected": float(rejected.detach().mean()),
        "rewards_margin": float((chosen - rejected).detach().mean()),
        "rewards_accuracy": float((chosen > rejected).float().mean()),
        "logps_chosen": float(now_good.detach().mean()),
        "logps_rejected": float(now_bad.detach().mean()),
    }
    return loss, row
