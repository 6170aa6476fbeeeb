"""Preferences: a reward model and DPO on pairs of made-up completions."""

from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.loops.language import nets, text
from benchmarks.loops.language.settings import Settings
from benchmarks.loops.language.task import Batch, Record, Task, token_loss
from benchmarks.loops.language.tasks_cls import Encoder

PROMPT, COMPLETION = 6, 10


class Pairs(Task):
    """Prompts of one topic with a completion on the topic (chosen) and one that strays (rejected).

    Mistakes: a share of `swapped` pairs, the `same` text on both sides, a share of `random` preferences.
    """

    def __init__(
        self, s: Settings, *, swapped: float = 0.0, same: bool = False, random: float = 0.0, overlap: float = 0.5,
        leak_eval: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(s)
        self.swapped, self.same, self.random, self.overlap, self.leak_eval = swapped, same, random, overlap, leak_eval
        self.train_pairs = self.pairs(s.train_samples or 2048, s.seed, mistakes=True)
        self.eval_pairs = self.train_pairs if leak_eval else self.pairs(192, s.seed + 1, mistakes=False)

    def pairs(self, count: int, seed: int, *, mistakes: bool) -> Tensor:
        """Word ids (count, 2, time): chosen first."""
        good, topics = text.topic_sentences(count, 6, seed, length=PROMPT + COMPLETION, overlap=self.overlap)
        stray = text.topic_sentences(count, 6, seed + 50, length=COMPLETION, overlap=self.overlap)[0]
        bad = torch.cat([good[:, :PROMPT], stray], 1)
        if self.same:
            bad = good.clone()
        pairs = torch.stack([good, bad], 1)
        if mistakes:
            draw = torch.rand(count, generator=torch.Generator().manual_seed(seed))
            share = self.swapped + self.random / 2
            pairs[draw < share] = pairs[draw < share].flip(1)
        elif self.swapped == 1:
            pairs = pairs.flip(1)
        del topics
        return pairs

    def batch(self, index: int) -> Batch:
        """Pairs of a micro-batch: (batch, 2, time)."""
        return (self.train_pairs[torch.as_tensor(self.rows(index)) % len(self.train_pairs)],)

    def spoil(self, batch: Batch) -> Batch:
        """Completions of other words."""
        return (torch.randint(0, 200, batch[0].shape, generator=torch.Generator().manual_seed(3)),)


class RewardModel(Pairs):
    """Bradley-Terry: the chosen completion must score higher."""

    name = "reward_model"

    def __init__(self, s: Settings, *, blank: bool = False, gold: bool = False, **rest: float | bool) -> None:
        super().__init__(s, **rest)  # type: ignore[arg-type]
        self.blank, self.gold = blank, gold
        self.model = Encoder(s, 1)

    def loss(self, batch: Batch) -> tuple[Tensor, Record]:
        """Negative log-sigmoid of the margin."""
        pairs = batch[0] * 0 if self.blank else batch[0]
        scores = self.model(pairs.flatten(0, 1)).view(-1, 2)
        margin = scores[:, 0] - scores[:, 1]
        extra = {
            "accuracy": (margin > 0).float().mean().item(), "margin": margin.mean().item(),
            "rewards_chosen": scores[:, 0].mean().item(), "rewards_rejected": scores[:, 1].mean().item(),
        }  # fmt: skip
        return -functional.logsigmoid(margin).mean(), extra

    def evaluate(self) -> Record:
        """Loss and accuracy on other pairs; with `gold`, also on pairs that a person ranked again."""
        loss, extra = self.loss((self.eval_pairs[:192],))
        out = {"loss": float(loss), **extra}
        if self.gold:
            _, other = self.loss((self.pairs(192, 4242, mistakes=False),))
            out["gold_accuracy"] = other["accuracy"]
        return out


@cache
def reference(width: int, layers: int) -> dict[str, Tensor]:
    """A decoder that has seen chosen and rejected completions alike."""
    s = Settings(n_embd=width, n_layer=layers, seed=5)
    torch.manual_seed(5)
    model, data = nets.Transformer(256, s), Pairs(s)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(150):
        ids = data.batch(step)[0].flatten(0, 1)
        loss = token_loss(model(ids[:, :-1]), ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


class Dpo(Pairs):
    """Direct preference optimisation against the frozen reference; `drift` keeps the reference equal to the policy."""

    name = "dpo"

    def __init__(
        self,
        s: Settings,
        *,
        drift: bool = False,
        random_reference: bool = False,
        sign: float = 1.0,
        **rest: float | bool,
    ) -> None:
        super().__init__(s, **rest)  # type: ignore[arg-type]
        model = nets.Transformer(256, s)
        self.reference = nets.Transformer(256, s).eval().requires_grad_(requires_grad=False)
        model.load_state_dict(reference(s.n_embd, s.n_layer))
        if not random_reference:
            self.reference.load_state_dict(reference(s.n_embd, s.n_layer))
        self.model, self.drift, self.sign = model, drift, sign

    def logps(self, model: nets.Transformer, pairs: Tensor) -> Tensor:
        """Sums of the log-probabilities of the completions: (batch, 2)."""
        ids = pairs.flatten(0, 1)
        logp = model(ids[:, :-1]).log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
        out: Tensor = logp[:, PROMPT - 1 :].sum(-1).view(-1, 2)
        return out

    def loss(self, batch: Batch) -> tuple[Tensor, Record]:
        """Negative log-sigmoid of the scaled difference of log-ratios."""
        beta = float(self.s.extra.get("beta", 0.1))
        assert isinstance(self.model, nets.Transformer)
        policy = self.logps(self.model, batch[0])
        with torch.no_grad():
            base = self.logps(self.model if self.drift else self.reference, batch[0])
        rewards = beta * (policy - base)
        margin = rewards[:, 0] - rewards[:, 1]
        mean = policy.detach().mean(0)
        extra = {
            "rewards/chosen": rewards[:, 0].mean().item(), "rewards/rejected": rewards[:, 1].mean().item(),
            "rewards/accuracies": (margin > 0).float().mean().item(), "rewards/margins": margin.mean().item(),
            "logps/chosen": mean[0].item(), "logps/rejected": mean[1].item(),
        }  # fmt: skip
        return -functional.logsigmoid(self.sign * margin).mean(), extra

    def evaluate(self) -> Record:
        """The same on other pairs."""
        loss, extra = self.loss((self.eval_pairs[:192],))
        return {"loss": float(loss), **extra}
