"""Reinforcement learning of a small policy that writes tokens: GRPO, REINFORCE and PPO."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.loops.dialogue.core import Record
from benchmarks.loops.dialogue.tasks.writer import BOS, EOS, Policy, judge, mask_of, write


@dataclass
class RlOptions:
    """Settings of token-level reinforcement learning; all after `watch` are faults or traps."""

    algo: str = "grpo"  # grpo, reinforce, ppo
    steps: int = 160
    lr: float = 4e-3
    prompts: int = 12
    group: int = 8
    size: int = 3  # letters of a prompt
    limit: int = 6
    kl: float = 0.02
    entropy: float = 0.0
    clip: float = 0.2
    epochs: int = 1
    temperature: float = 1.0
    max_norm: float = 1.0
    warm: int = 60  # steps of imitation before
    reward: str = "partial"  # partial, exact, constant, never, length, proxy, short
    watch: tuple[str, ...] = ("kl", "entropy", "length", "cut", "std")
    log_every: int = 4
    eval_every: int = 20
    stale: int = 0
    drift_sampler: float = 0.0
    slow_ms: float = 0.0
    flip: bool = False
    reward_scale: float = 1.0
    blind: bool = False


def _logp(policy: Policy, prompt: Tensor, text: Tensor, temperature: float) -> tuple[Tensor, Tensor, Tensor]:
    shifted = torch.cat([torch.full((len(text), 1), BOS), text[:, :-1]], 1)
    logits, values, _ = policy(prompt, shifted)
    logp = (logits / temperature).log_softmax(-1)
    entropy = -(logp.exp() * logp).sum(-1)
    return logp.gather(-1, text[..., None])[..., 0], entropy, values


def _prompts(o: RlOptions, count: int) -> Tensor:
    return torch.randint(0, 7, (count, o.size))


def _imitate(policy: Policy, o: RlOptions) -> None:
    opt = torch.optim.Adam(policy.parameters(), lr=3e-3)
    for _ in range(o.warm):
        prompt = _prompts(o, 48)
        text = torch.cat([prompt, torch.full((48, max(o.limit - o.size, 1)), EOS)], 1)[:, : max(o.limit, o.size + 1)]
        loss = -(_logp(policy, prompt, text, 1.0)[0] * mask_of(text)).mean()
        opt.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        opt.step()


def train(o: RlOptions, seed: int, rec: Record) -> None:
    """Train a policy by `o` and note everything in `rec`."""
    torch.manual_seed(seed)
    policy = Policy(o.size, o.blind)
    _imitate(policy, o)
    ref, sampler = copy.deepcopy(policy), copy.deepcopy(policy)
    opt = torch.optim.Adam(policy.parameters(), lr=o.lr)
    for step in range(o.steps):
        begin = time.perf_counter()
        if not o.stale or step % o.stale == 0:
            sampler.load_state_dict(policy.state_dict())
            if o.drift_sampler:
                for p in sampler.parameters():
                    p.data += o.drift_sampler * torch.randn_like(p) * p.abs().mean()
        row = _update(policy, ref, sampler, opt, o)
        if o.slow_ms:
            time.sleep(o.slow_ms * step / o.steps / 1000)
        row["step_ms"] = (time.perf_counter() - begin) * 1000
        if step % o.log_every == 0 or step == o.steps - 1:
            rec.train(step, _pick(row, o))
        if o.eval_every and (step + 1) % o.eval_every == 0:
            prompt = _prompts(o, 64)
            text = write(policy, prompt, o.limit, o.temperature)
            rec.eval(step + 1, {"success": float(judge(prompt, text, mask_of(text), "exact")[1].mean())})


def _pick(row: dict[str, float], o: RlOptions) -> dict[str, float]:
    wanted = {"loss", "reward", "gnorm", "lr", *o.watch}
    return {k: v for k, v in row.items() if k in wanted}


def _update(policy: Policy, ref: Policy, sampler: Policy, opt: torch.optim.Optimizer, o: RlOptions) -> dict[str, float]:
    prompt = _prompts(o, o.prompts).repeat_interleave(o.group, 0)
    text = write(sampler, prompt, o.limit, o.temperature)
    mask = mask_of(text)
    reward, _ = judge(prompt, text, mask, o.reward)
    reward = reward * o.reward_scale
    groups = reward.view(o.prompts, o.group)
    with torch.no_grad():
        old, _, guess = _logp(sampler, prompt, text, o.temperature)
        before = _logp(ref, prompt, text, o.temperature)[0]
    if o.algo == "ppo":
        adv = reward[:, None] - guess
        adv = (adv - adv.mean()) / (adv.std() + 1e-6)
    else:
        adv = groups - groups.mean(1, keepdim=True)
        adv = (adv / (groups.std(1, keepdim=True) + 1e-4) if o.algo == "grpo" else adv).view(-1, 1)
    adv = -adv if o.flip else adv
    row: dict[str, float] = {}
    for _ in range(o.epochs):
        logp, entropy, values = _logp(policy, prompt, text, o.temperature)
        ratio = (logp - old).exp()
        gain = (
            torch.min(ratio * adv, ratio.clamp(1 - o.clip, 1 + o.clip) * adv) if o.algo != "reinforce" else logp * adv
        )
        gap = before - logp
        kl = gap.exp() - gap - 1
        total = mask.sum()
        loss = (
            -(gain * mask).sum() / total + o.kl * (kl * mask).sum() / total - o.entropy * (entropy * mask).sum() / total
        )
        critic = functional.mse_loss(values, reward[:, None].expand_as(values))
        full = loss + 0.5 * critic if o.algo == "ppo" else loss
        opt.zero_grad()
        full.backward()  # type: ignore[no-untyped-call]
        norm = float(torch.nn.utils.clip_grad_norm_(policy.parameters(), o.max_norm or 1e9))
        opt.step()
        clipped = ((ratio - 1).abs() > o.clip).float()
        row = {
            "loss": float(full.detach()),
            "reward": float(reward.mean()),
            "std": float(groups.std(1).mean()),
            "zero_std": float((groups.std(1) < 1e-6).float().mean()),
            "kl": float((kl.detach() * mask).sum() / total),
            "entropy": float((entropy.detach() * mask).sum() / total),
            "length": float(mask.sum(1).mean()),
            "cut": float(1 - (text == EOS).any(1).float().mean()),
            "clipfrac": float((clipped * mask).sum() / total),
            "ratio": float((ratio.detach() * mask).sum() / total),
            "ratio_max": float((ratio.detach() * mask).max()),
            "gnorm": norm,
            "lr": o.lr,
            "vloss": float(critic.detach()),
            "approx_kl": float(((old - logp.detach()) * mask).sum() / total),
        }
    return row
