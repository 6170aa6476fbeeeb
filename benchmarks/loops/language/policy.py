"""A GRPO-like loop: a tiny recurrent policy answers with tokens and is rewarded by a rule."""

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from benchmarks.loops.language.rl_writers import RlWriter
from benchmarks.loops.language.task import Record

END, TOKENS, PROMPTS = 0, 12, 10


@dataclass(frozen=True)
class GrpoConfig:
    """What the author sets."""

    lr: float = 4e-3
    total_steps: int = 70
    prompts_per_batch: int = 8
    rollout_n: int = 8
    max_response_length: int = 12
    kl_loss_coef: float = 0.02
    clip_ratio: float = 0.2
    entropy_coeff: float = 0.0
    ppo_epochs: int = 2
    temperature: float = 1.0
    grad_clip: float = 1.0
    task: str = "repeat_prompt"
    seed: int = 7


@dataclass(frozen=True)
class GrpoPlant:
    """What is wrong in the code."""

    reward: str = "match"
    stale: int = 0
    reference_moves: bool = False
    same_rollout: bool = False
    keep_group: bool = False
    flip_advantage: bool = False
    noise: float = 0.0


class Policy(nn.Module):
    """A GRU cell over tokens, started from the prompt."""

    def __init__(self) -> None:
        super().__init__()
        self.prompt, self.tok = nn.Embedding(PROMPTS, 48), nn.Embedding(TOKENS, 48)
        self.cell, self.head = nn.GRUCell(48, 48), nn.Linear(48, TOKENS)

    def logits(self, prompts: Tensor, actions: Tensor) -> Tensor:
        """Logits for every position of the given actions: (rows, time, tokens)."""
        state, x, outs = self.prompt(prompts), torch.zeros(len(prompts), 48), []
        for time_step in range(actions.shape[1]):
            state = self.cell(x, state)
            outs.append(self.head(state))
            x = self.tok(actions[:, time_step])
        return torch.stack(outs, 1)

    @torch.no_grad()
    def sample(self, prompts: Tensor, length: int, heat: float) -> Tensor:
        """Tokens (rows, length); after the end token only end tokens follow."""
        state, x, outs = self.prompt(prompts), torch.zeros(len(prompts), 48), []
        over = torch.zeros(len(prompts), dtype=torch.bool)
        for _ in range(length):
            state = self.cell(x, state)
            token = torch.multinomial((self.head(state) / heat).softmax(-1), 1)[:, 0]
            token = token.masked_fill(over, END)
            over |= token == END
            outs.append(token)
            x = self.tok(token)
        return torch.stack(outs, 1)


def mask_of(actions: Tensor) -> Tensor:
    """1.0 up to and with the first end token."""
    before = (actions == END).cumsum(1) - (actions == END).long()
    return (before == 0).float()


def gold(prompts: Tensor, actions: Tensor) -> Tensor:
    """The task: the prompt's token four times, then the end. Share of places that are right."""
    want = torch.full_like(actions[:, :5], END)
    want[:, :4] = (prompts + 1)[:, None]
    right = (actions[:, :5] == want).float().mean(1)
    return right * (mask_of(actions).sum(1) <= 6)


def reward_of(kind: str, prompts: Tensor, actions: Tensor) -> Tensor:
    """The reward that the run really uses."""
    length = mask_of(actions).sum(1)
    rules: dict[str, Callable[[], Tensor]] = {
        "match": lambda: gold(prompts, actions),
        "constant": lambda: 0.5 + 0 * length,
        "never": lambda: (actions == 99).all(1).float(),
        "exact": lambda: (gold(prompts, actions) > 0.99) * 1.0,
        "length": lambda: 0.3 * gold(prompts, actions) + 0.08 * length,
        "short": lambda: 0.2 * gold(prompts, actions) + 1.0 - length / 12,
        "contains": lambda: (actions == (prompts + 1)[:, None]).float().sum(1).clamp(max=8) / 8,
        "any_token": lambda: (actions == 3).float().mean(1),
    }
    return rules[kind]()


@dataclass
class Rollout:
    """Samples with what is needed to train on them."""

    prompts: Tensor
    actions: Tensor
    mask: Tensor
    logp: Tensor
    rewards: Tensor
    advantages: Tensor
    record: Record = field(default_factory=dict)


def logp_of(policy: Policy, prompts: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probabilities of the actions and entropies, both (rows, time), in nats."""
    logp = policy.logits(prompts, actions).log_softmax(-1)
    return logp.gather(-1, actions[..., None])[..., 0], -(logp.exp() * logp).sum(-1)


def roll(policy: Policy, c: GrpoConfig, plant: GrpoPlant, step: int) -> Rollout:
    """Sample groups, reward them, and normalise within groups."""
    draw = torch.Generator().manual_seed(c.seed * 1000 + step)
    prompts = torch.randint(0, PROMPTS, (c.prompts_per_batch,), generator=draw).repeat_interleave(c.rollout_n)
    actions = policy.sample(prompts, c.max_response_length, c.temperature)
    if plant.same_rollout:
        actions = actions.view(c.prompts_per_batch, c.rollout_n, -1)[:, :1].repeat(1, c.rollout_n, 1).flatten(0, 1)
    rewards = reward_of(plant.reward, prompts, actions)
    rewards = rewards + plant.noise * torch.randn(len(rewards), generator=draw)
    groups = rewards.view(-1, c.rollout_n)
    spread = groups.std(1, keepdim=True)
    advantages = ((groups - groups.mean(1, keepdim=True)) / (spread + 1e-6)).flatten()
    with torch.no_grad():
        logp, _ = logp_of(policy, prompts, actions)
    mask = mask_of(actions)
    record = {
        "critic/rewards/mean": rewards.mean().item(), "critic/rewards/std": rewards.std().item(),
        "critic/rewards/group_std": spread.mean().item(),
        "critic/rewards/zero_std_frac": (spread < 1e-6).float().mean().item(),
        "critic/advantages/max": advantages.max().item(), "response_length/mean": mask.sum(1).mean().item(),
        "response_length/clip_ratio": (actions != END).all(1).float().mean().item(),
    }  # fmt: skip
    return Rollout(prompts, actions, mask, logp, rewards, -advantages if plant.flip_advantage else advantages, record)


def improve(
    policy: Policy, reference: Policy, optimizer: torch.optim.Optimizer, data: Rollout, c: GrpoConfig
) -> Record:
    """Clipped policy-gradient steps on a rollout, with a penalty on KL to the reference."""
    total = data.mask.sum()
    with torch.no_grad():
        base, _ = logp_of(reference, data.prompts, data.actions)
    record: Record = {}
    for _ in range(c.ppo_epochs):
        logp, entropy = logp_of(policy, data.prompts, data.actions)
        ratio = (logp - data.logp).exp()
        gain = torch.minimum(
            ratio * data.advantages[:, None], ratio.clamp(1 - c.clip_ratio, 1 + c.clip_ratio) * data.advantages[:, None]
        )
        gap = base - logp
        kl = ((gap.exp() - gap - 1) * data.mask).sum() / total
        mean_entropy = (entropy * data.mask).sum() / total
        pg_loss = -(gain * data.mask).sum() / total
        loss = pg_loss + c.kl_loss_coef * kl - c.entropy_coeff * mean_entropy
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = torch.nn.utils.clip_grad_norm_(policy.parameters(), c.grad_clip)
        optimizer.step()
        clipped = (((ratio - 1).abs() > c.clip_ratio).float() * data.mask).sum() / total
        record = {
            "actor/pg_loss": pg_loss.item(), "actor/entropy": mean_entropy.item(), "actor/kl_loss": kl.item(),
            "actor/pg_clipfrac": clipped.item(),
            "actor/ppo_kl": (((data.logp - logp) * data.mask).sum() / total).item(),
            "actor/grad_norm": float(norm), "actor/ratio_max": (ratio * data.mask).max().item(),
        }  # fmt: skip
    return record


def train(c: GrpoConfig, plant: GrpoPlant, log: RlWriter) -> None:
    """Run the loop and log every step; every tenth step is evaluated by the gold task."""
    torch.manual_seed(c.seed)
    policy = Policy()
    reference = copy.deepcopy(policy).requires_grad_(requires_grad=False)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=c.lr, weight_decay=0.0)
    sampler, held = copy.deepcopy(policy), None
    log.start(vars(c))
    for step in range(1, c.total_steps + 1):
        begun = time.perf_counter()
        if not plant.stale or step % plant.stale == 1:
            sampler.load_state_dict(policy.state_dict())
        if held is None or not plant.keep_group:
            held = roll(sampler, c, plant, step)
        record = held.record | improve(policy, reference, optimizer, held, c)
        record |= {"actor/lr": c.lr, "perf/time_per_step": time.perf_counter() - begun}
        if plant.reference_moves:
            reference.load_state_dict(policy.state_dict())
        if step % 10 == 0:
            record["val/accuracy"] = validate(policy, c)
        log.row(step, record)
    log.close()


@torch.no_grad()
def validate(policy: Policy, c: GrpoConfig) -> float:
    """Share of greedy answers that solve the task."""
    prompts = torch.arange(PROMPTS)
    actions = policy.sample(prompts, c.max_response_length, 0.01)
    return float((gold(prompts, actions) == 1).float().mean())
