"""Runs of agents with a fault of reward, exploration, critic or policy."""

from __future__ import annotations

from benchmarks.loops.science.agents.designer import Designer
from benchmarks.loops.science.agents.dock import Dock
from benchmarks.loops.science.agents.maze import Maze
from benchmarks.loops.science.run import Run


def runs() -> list[Run]:
    """Return them."""
    return [*_rewards(), *_policies(), *_critics()]


def _rewards() -> list[Run]:
    none = "the reward is the same at every record"
    same = "no group has any spread of rewards, so advantage and policy gradient are zero"
    hacked = "the reward rises to its limit while the task's own score falls"
    longer = "length runs to the limit and takes the reward along while the task's own score falls"
    return [
        Run(Dock(constant_reward=True), "reward_broken", none, "boxes", "printed"),
        Run(Designer(never_satisfied=True), "reward_broken", none, "jsonl_flat", "json", also=("no_reward_variance",)),
        Run(
            Maze(goal_unreachable=True),
            "reward_broken",
            "no episode is ever paid",
            "csv_own",
            also=("exploration_failure",),
        ),
        Run(Designer(greedy_groups=True), "no_reward_variance", same, "logging", "yaml"),
        Run(Designer(greedy_groups=True, group_size=4, seed=3), "no_reward_variance", same, "wandb_jsonl", "wandb"),
        Run(Designer(temperature=0.02, lr=2e-2, seed=2), "no_reward_variance", same, "csv_own", "json", weak=True),
        Run(Dock(rewards_speed=True), "reward_hacking", "return rises while success stays at zero", "csv_own", "yaml"),
        Run(Dock(rewards_speed=True, lr=6e-3, seed=4), "reward_hacking", "return rises while success falls", "boxes"),
        Run(Designer(rewards_repeats=True, seed=4), "reward_hacking", hacked, "jsonl_nested", "json"),
        Run(
            Designer(rewards_length=True), "length_exploitation", longer, "wandb_csv", "wandb", also=("reward_hacking",)
        ),
        Run(
            Designer(rewards_length=True, kl_coef=0.0, seed=5),
            "length_exploitation",
            longer,
            "logging",
            "printed",
            also=("reward_hacking",),
        ),
    ]


def _policies() -> list[Run]:
    narrow = "entropy is near zero within a few updates while the return stands still below what others reach"
    far = "KL to the reference climbs without bound and the reward does not follow"
    stale = "most ratios lie outside the clip: many updates on samples of old weights"
    return [
        Run(Dock(sparse_reward=True, ent_coef=-0.5, lr=1e-2), "entropy_collapse", narrow, "boxes", "printed"),
        Run(Dock(ent_coef=-1.0, lr=5e-3, seed=2), "entropy_collapse", narrow, "csv_own", "yaml"),
        Run(
            Designer(lr=6e-2, kl_coef=0.0, seed=2),
            "entropy_collapse",
            narrow,
            "logging",
            "args",
            also=("kl_blowup", "lr_too_high"),
        ),
        Run(Designer(kl_inverted=True, kl_coef=0.3), "kl_blowup", far, "jsonl_flat", "json", also=("wrong_loss",)),
        Run(
            Designer(kl_coef=0.0, lr=3e-2, seed=6),
            "kl_blowup",
            far,
            "csv_own",
            "yaml",
            also=("lr_too_high", "entropy_collapse"),
            weak=True,
        ),
        Run(Designer(kl_inverted=True, kl_coef=0.6, seed=3), "kl_blowup", far, "prints", also=("wrong_loss",)),
        Run(Dock(sync_every=20, epochs=8, seed=2), "off_policy_staleness", stale, "wandb_jsonl", "wandb"),
        Run(Dock(sync_every=40, epochs=4, lr=5e-3, seed=3), "off_policy_staleness", stale, "boxes", "printed"),
        Run(Designer(reuse=24, lr=1e-2, seed=3), "off_policy_staleness", stale, "csv_own", "json"),
        Run(
            Dock(lr=0.3, seed=5),
            "lr_too_high",
            "return, KL and value loss leap from the first updates",
            "logging",
            "yaml",
            also=("entropy_collapse",),
        ),
        Run(
            Dock(flipped_returns=True),
            "wrong_loss",
            "the return falls steadily while the optimizer works as it should",
            "csv_own",
            "json",
        ),
    ]


def _critics() -> list[Run]:
    wild = "value loss and value estimates grow by orders of magnitude beyond any return"
    never = "epsilon is at its floor before the goal was seen once, and the return stays at zero"
    return [
        Run(Dock(gamma=1.15, seed=2), "value_instability", wild, "csv_own", "yaml"),
        Run(Dock(gamma=1.3, gae_lambda=0.99, seed=6), "value_instability", wild, "boxes", "printed"),
        Run(Maze(gamma=1.05, target_update=2, no_terminal=True), "value_instability", wild, "jsonl_flat", "json"),
        Run(Maze(gamma=1.0, lr=1e-2, target_update=2, no_terminal=True, seed=3), "value_instability", wild, "logfmt"),
        Run(Maze(corridor=14, eps_start=0.0, eps_end=0.0), "exploration_failure", never, "csv_own", "yaml"),
        Run(
            Maze(corridor=14, eps_decay_episodes=8, eps_end=0.01, seed=2),
            "exploration_failure",
            never,
            "logging",
            "printed",
        ),
        Run(Maze(corridor=16, eps_decay_episodes=4, eps_end=0.0, seed=4), "exploration_failure", never, "prints"),
    ]
