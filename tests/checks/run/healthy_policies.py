"""Simulated runs of policies with nothing wrong: noisy, awkward, and sound."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Run
from mldebug_mcp.logs.settings import Scalar
from tests.runs import run_of

Curve = NDArray[np.float64]


def _rise(draw: np.random.Generator, count: int, start: float, end: float) -> Curve:
    """Return a saturating rise with a random midpoint and steepness."""
    middle, steepness = draw.uniform(0.15, 0.7), draw.uniform(4, 15)
    curve = 1 / (1 + np.exp(-steepness * (np.linspace(0, 1, count) - middle)))
    risen: Curve = (curve - curve[0]) / (curve[-1] - curve[0])
    return start + (end - start) * risen


def _wander(draw: np.random.Generator, count: int, size: float, memory: float = 0.95) -> Curve:
    """Return noise with a memory and standard deviation `size`, as running means of episodes have it."""
    values = np.zeros(count)
    shocks = draw.standard_normal(count) * np.sqrt(1 - memory**2)
    for at in range(1, count):
        values[at] = memory * values[at - 1] + shocks[at]
    return size * values


def _text_policy(draw: np.random.Generator, count: int) -> dict[str, Curve]:
    line = np.linspace(0, 1, count)
    start = draw.uniform(0.1, 0.5)
    noise = draw.uniform(0.03, 0.1)
    length = draw.uniform(100, 900)
    return {
        "reward": _rise(draw, count, start, min(0.95, start + draw.uniform(0.2, 0.5)))
        + noise * draw.standard_normal(count),
        "entropy": np.maximum(
            draw.uniform(0.08, 0.15) + 0.5 * np.exp(-3 * line) + 0.04 * draw.standard_normal(count), 0.03
        ),
        "kl": np.abs(0.1 * line**1.5 * np.exp(0.5 * draw.standard_normal(count))),
        "completions/mean_length": length
        * np.exp(draw.uniform(-0.4, 0.4) * line + _wander(draw, count, 0.08) + 0.06 * draw.standard_normal(count)),
        "completions/clipped_ratio": np.clip(0.15 + 0.08 * draw.standard_normal(count), 0, 1),
        "clip_ratio/region_mean": np.abs(0.02 * draw.standard_normal(count)),
        "grad_norm": 0.3 * np.exp(0.5 * draw.standard_normal(count)),
        "step_time": 12 * np.exp(0.1 * draw.standard_normal(count)),
        "memory": 60 - 8 * np.exp(-np.arange(count) / 10) + 0.2 * draw.standard_normal(count),
    }


def grpo(seed: int) -> Run:
    """Loss near zero, reward rises, half of the groups vary, the log takes every step or every fifth."""
    draw = np.random.default_rng(seed)
    count = int(draw.choice([40, 100, 250, 600]))
    curves = _text_policy(draw, count)
    curves["loss"] = 0.01 * draw.standard_normal(count) * draw.integers(0, 2)
    curves["reward_std"] = np.abs(0.25 + 0.06 * draw.standard_normal(count))
    curves["frac_reward_zero_std"] = np.clip(
        0.2 + 0.45 * np.linspace(0, 1, count) + 0.1 * draw.standard_normal(count), 0, 1
    )
    curves["sampling/importance_sampling_ratio/min"] = np.clip(0.4 + 0.15 * draw.standard_normal(count), 0.05, 1)
    return run_of(curves, kind="grpo", every=float(draw.choice([1, 5])), config={"max_completion_length": 2048})


def rlhf(seed: int) -> Run:
    """PPO on a language model: KL is summed over tokens, the value loss falls and wobbles."""
    draw = np.random.default_rng(seed)
    count = int(draw.choice([60, 200, 500]))
    curves = _text_policy(draw, count)
    curves["kl"] = np.abs(12 * np.linspace(0, 1, count) * np.exp(0.3 * draw.standard_normal(count)))
    curves["reward"] = 4 * curves["reward"] - 2
    curves["val/ratio"] = 1 + 0.03 * draw.standard_normal(count)
    curves["policy/approxkl_avg"] = 0.01 * np.exp(0.6 * draw.standard_normal(count))
    curves["value_loss"] = (0.1 + 0.5 * np.exp(-5 * np.linspace(0, 1, count))) * np.exp(
        0.4 * draw.standard_normal(count)
    )
    return run_of(curves, kind="ppo")


def agent(seed: int) -> Run:
    """PPO on a small environment: the value loss follows the square of the returns, entropy may be negative."""
    draw = np.random.default_rng(seed)
    count = int(draw.choice([50, 150, 500]))
    low, gain = draw.choice([-200.0, -20.0, 0.0, 20.0]), draw.choice([40.0, 180.0, 500.0])
    returns = _rise(draw, count, 0, gain) + _wander(draw, count, 0.04 * gain)
    entropy = draw.choice([0.69, 1.38, 2.8]) * np.exp(-draw.uniform(0.3, 1.8) * np.linspace(0, 1, count))
    if draw.random() < 0.4:
        entropy = entropy - draw.uniform(0.5, 3)
    curves: Mapping[str, Curve] = {
        "rollout/ep_rew_mean": low + returns,
        "rollout/ep_len_mean": 200 + 0.5 * returns,
        "train/entropy_loss": -entropy + 0.01 * draw.standard_normal(count),
        "train/approx_kl": 0.012 * np.exp(0.4 * draw.standard_normal(count)),
        "train/clip_fraction": np.clip(0.15 + 0.05 * draw.standard_normal(count), 0, 1),
        "train/value_loss": (1 + (0.1 * (np.abs(low) + returns)) ** 2) * np.exp(0.5 * draw.standard_normal(count)),
        "train/explained_variance": np.clip(_rise(draw, count, 0, 0.9), -1, 1),
        "train/policy_gradient_loss": -0.01 + 0.005 * draw.standard_normal(count),
    }
    return run_of(curves, kind="rl", every=2048)


def q_learner(seed: int) -> Run:
    """DQN: returns are flat at first, swing later; the loss grows with the values and never settles."""
    draw = np.random.default_rng(seed)
    count = int(draw.choice([60, 200, 800]))
    gain = draw.choice([20.0, 200.0, 400.0])
    returns = 10 + _rise(draw, count, 0, gain) * (1 + _wander(draw, count, 0.08))
    curves: Mapping[str, Curve] = {
        "rollout/ep_rew_mean": returns,
        "rollout/exploration_rate": np.maximum(0.05, 1 - 3 * np.linspace(0, 1, count)),
        "train/loss": 0.05 * np.abs(returns) * np.exp(0.8 * draw.standard_normal(count)),
        "train/critic_loss": 0.01 * returns**1.5 * np.exp(0.8 * draw.standard_normal(count)),
    }
    return run_of(curves, kind="rl", every=100)


def preference(seed: int) -> Run:
    """DPO: the margin grows, both rewards fall, accuracy rises from chance."""
    draw = np.random.default_rng(seed)
    count = int(draw.choice([40, 150, 400]))
    margin = _rise(draw, count, 0, draw.uniform(0.5, 3)) + 0.1 * draw.standard_normal(count)
    fall = _rise(draw, count, 0, draw.uniform(0.2, 1.5))
    curves: Mapping[str, Curve] = {
        "loss": np.log1p(np.exp(-margin)) + 0.03 * draw.standard_normal(count),
        "rewards/chosen": margin / 2 - fall,
        "rewards/rejected": -margin / 2 - fall,
        "rewards/margins": margin,
        "rewards/accuracies": np.clip(0.5 + 0.3 * np.tanh(margin) + 0.08 * draw.standard_normal(count), 0, 1),
        "step_time": 3 * np.exp(0.15 * draw.standard_normal(count)),
    }
    config: Mapping[str, Scalar] = {"max_steps": count}
    return run_of(curves, kind="preference", config=config)


KINDS = {"grpo": grpo, "rlhf": rlhf, "agent": agent, "q_learner": q_learner, "preference": preference}
