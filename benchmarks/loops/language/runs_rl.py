"""Runs of agents: GRPO-like policies, PPO, DQN and soft actor-critic."""

from pathlib import Path
from typing import Any

from benchmarks.loops.language import policy
from benchmarks.loops.language.agents import Ppo, PpoConfig, PpoPlant
from benchmarks.loops.language.catalog import OK, Run
from benchmarks.loops.language.qlearn import Dqn, DqnConfig, DqnPlant, Sac, SacConfig, SacPlant
from benchmarks.loops.language.rl_writers import CleanRl, Lines, RlWriter, Tables, Verl
from benchmarks.loops.language.task import Record

Also = tuple[str, ...]


def run(  # noqa: PLR0917 - a row of a table
    kind: str, key: str, cause: str, fact: str, writer: type[RlWriter], args: str, settings: dict[str, Any],
        plant: dict[str, Any], also: Also, *, weak: bool) -> Run:  # fmt: skip
    """A run of one of the agents."""

    def make(folder: Path) -> list[Record]:
        log = writer(folder, args)
        if kind == "grpo":
            policy.train(policy.GrpoConfig(**settings), policy.GrpoPlant(**plant), log)
        elif kind == "ppo":
            Ppo(PpoConfig(**settings), PpoPlant(**plant)).train(log)
        elif kind == "dqn":
            Dqn(DqnConfig(**settings), DqnPlant(**plant)).train(log)
        else:
            Sac(SacConfig(**settings), SacPlant(**plant)).train(log)
        return log.history

    style = f"{writer.__name__.lower()}{'+' + args if args else ''}"
    return Run(f"{kind}/{key}", cause, kind, style, fact, make, also, weak)


def grpo(key: str, cause: str, fact: str, writer: type[RlWriter] = Verl, args: str = "", *, plant: dict[str,
    Any] | None = None,
         also: Also = (), weak: bool = False, **settings: Any) -> Run:  # fmt: skip  # noqa: ANN401
    """A GRPO-like run."""
    return run("grpo", key, cause, fact, writer, args, settings, plant or {}, also, weak=weak)


def ppo(key: str, cause: str, fact: str, writer: type[RlWriter] = CleanRl, args: str = "", *, plant: dict[str,
    Any] | None = None,
        also: Also = (), weak: bool = False, **settings: Any) -> Run:  # fmt: skip  # noqa: ANN401
    """A PPO run."""
    return run("ppo", key, cause, fact, writer, args, settings, plant or {}, also, weak=weak)


def dqn(key: str, cause: str, fact: str, writer: type[RlWriter] = CleanRl, args: str = "", *, plant: dict[str,
    Any] | None = None,
        also: Also = (), weak: bool = False, **settings: Any) -> Run:  # fmt: skip  # noqa: ANN401
    """A DQN run."""
    return run("dqn", key, cause, fact, writer, args, settings, plant or {}, also, weak=weak)


def sac(key: str, cause: str, fact: str, writer: type[RlWriter] = CleanRl, args: str = "", *, plant: dict[str,
    Any] | None = None,
        also: Also = (), weak: bool = False, **settings: Any) -> Run:  # fmt: skip  # noqa: ANN401
    """A soft actor-critic run."""
    return run("sac", key, cause, fact, writer, args, settings, plant or {}, also, weak=weak)


CORRIDOR: dict[str, Any] = {"env_id": "Corridor-v0"}
GRPO: list[Run] = [
    grpo("ok/1", OK, "reward climbs and settles", args="omega"),
    grpo("ok/2", OK, "the same with a noisy reward", Lines, "json", plant={"noise": 0.15}, seed=3),
    grpo("ok/3", OK, "small groups, noisy but climbing", rollout_n=4, seed=5),
    grpo("broken/1", "reward_broken", "the reward is 0.5 for all", args="omega", plant={"reward": "constant"},
        also=("no_reward_variance",)),
    grpo("variance/1", "no_reward_variance", "all answers of a group are one answer: spread 0 though groups differ",
        args="json", writer=Lines,
         plant={"same_rollout": True}),
    grpo("variance/2", "no_reward_variance", "the same", plant={"same_rollout": True}, seed=2),
    grpo("collapse/1", "entropy_collapse", "entropy goes to 0 in some steps at a low reward", args="omega", lr=3e-2,
        entropy_coeff=-0.3, also=("lr_too_high", "wrong_loss", "no_reward_variance")),
    grpo("kl/2", "kl_blowup", "KL to 4 with no penalty on it, as high as in a sound run", Lines, "json",
        lr=3e-2, kl_loss_coef=0.0, grad_clip=100.0,
        plant={"noise": 1.0},
         also=("lr_too_high", "entropy_collapse"), weak=True),
    grpo("stale/1", "off_policy_staleness", "clip fraction and ppo_kl rise within each 12 steps and fall back",
        args="omega", plant={"stale": 12}),
    grpo("stale/2", "off_policy_staleness", "ratios far from 1", lr=6e-3, plant={"stale": 25}),
    grpo("length/1", "length_exploitation", "answers grow to the limit, reward with them, accuracy 0", args="json",
        writer=Lines, plant={"reward": "length"},
         also=("reward_hacking",)),
    grpo("length/2", "length_exploitation", "answers shrink to one token, accuracy 0", plant={"reward": "short"},
        also=("reward_hacking", "entropy_collapse")),
    grpo("hack/1", "reward_hacking", "reward to 1, val/accuracy stays 0", args="omega", plant={"reward": "contains"},
        also=("length_exploitation",)),
    grpo("hack/2", "reward_hacking", "reward to 1 by one token, val/accuracy 0", plant={"reward": "any_token"},
        also=("length_exploitation", "entropy_collapse")),
    grpo("explore/1", "exploration_failure", "an exact reward that is never met in 100 steps", args="yaml",
        plant={"reward": "exact"},
         also=("reward_broken", "no_reward_variance")),
    grpo("sign/1", "wrong_loss", "the reward falls from the first step: the sign of the advantage", args="omega",
        plant={"flip_advantage": True}),
]  # fmt: skip

AGENTS: list[Run] = [
    ppo("ok/1", OK, "returns climb with noise", args="namespace"),
    ppo("ok/3", OK, "a sparse corridor is solved after a while", args="namespace", **CORRIDOR),
    ppo("value/1", "value_instability", "value loss in the millions: rewards are not scaled", args="namespace",
        plant={"reward_scale": 300.0}, max_grad_norm=0.0,
        learning_rate=2e-2, also=("lr_too_high",)),
    ppo("value/2", "value_instability", "value loss grows to 1e4 as the return falls: values pass the ends of episodes",
        Tables, plant={"bootstrap_done": True}, gamma=1.02, gae_lambda=1.0, learning_rate=1e-2),
    ppo("lr/1", "lr_too_high", "approx_kl and clipfrac are enormous, the return stays low", args="namespace",
        learning_rate=0.3,
        also=("entropy_collapse", "kl_blowup")),
    ppo("collapse/1", "entropy_collapse", "entropy falls to 0.04, the return lags behind", Tables, "json",
        ent_coef=-0.5, learning_rate=1e-2,
        also=("exploration_failure", "wrong_loss")),
    ppo("explore/1", "exploration_failure", "no goal is ever met: the return is the cost of 40 steps",
        args="namespace", plant={"length": 35}, **CORRIDOR, also=("reward_broken",)),
    ppo("explore/2", "exploration_failure", "the return never leaves its floor", Tables, plant={"length": 36,
        "greedy_bias": 4.0}, ent_coef=0.0, **CORRIDOR,
        also=("entropy_collapse", "reward_broken")),
    dqn("ok/1", OK, "returns climb, q_values settle", args="namespace"),
    dqn("ok/2", OK, "pole: noisy climb", Tables, env_id="Pole-v0", total_iterations=1200, gamma=0.95),
    dqn("value/1", "value_instability", "q_values and td_loss grow without bound", args="namespace",
        plant={"no_target": True, "no_terminal": True}, gamma=1.0,
        learning_rate=1e-2, env_id="Pole-v0", also=("lr_too_high",)),
    dqn("value/2", "value_instability", "q_values climb to 320, the return stays at 10",
        Tables, plant={"no_terminal": True},
        gamma=1.0, env_id="Pole-v0", learning_rate=5e-3,
        target_network_frequency=5),
    dqn("explore/1", "exploration_failure", "epsilon is 0.0 from the start; the goal is never met", args="namespace",
        start_e=0.0, end_e=0.0, seed=2, total_iterations=560,
        plant={"length": 20}, also=("reward_broken",)),
    dqn("broken/1", "reward_broken", "each return is exactly 0", plant={"reward_zero": True}),
    sac("ok/1", OK, "returns climb toward 0", args="namespace"),
    sac("value/1", "value_instability", "critics diverge: gamma above 1 and no slow target", args="namespace",
        gamma=1.05, tau=1.0,
        plant={"single_critic": True}, q_lr=1e-2, also=("lr_too_high",)),
    sac("value/2", "value_instability", "qf_loss grows to 7e12", Tables, gamma=1.02, tau=1.0, q_lr=3e-2,
        plant={"single_critic": True, "reward_scale": 10.0}),
]  # fmt: skip

RUNS = GRPO + AGENTS
