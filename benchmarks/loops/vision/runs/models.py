"""Runs whose model, or its fit to the data, is at fault; and actor-critic runs."""

import torch

from benchmarks.loops.vision.config import Config
from benchmarks.loops.vision.faults.models import hidden_bias, layer_norms, scaled_weights, zero_share
from benchmarks.loops.vision.gridworld import Gridworld
from benchmarks.loops.vision.run import Run

NORM = ("loss", "lr", "grad_norm")
LAYERS = ("loss", "lr", "grad_first", "grad_last")
DEAD = ("loss", "lr", "grad_norm", "dead_frac")
RL = ("policy_loss", "value_loss", "entropy", "ep_rew_mean", "ep_len_mean", "explained_variance")


def constant_reward(loop: Gridworld) -> None:
    """Each move earns the same, whatever it reaches."""
    loop.reward = lambda arrived: torch.full_like(arrived, 0.5)


def goal_never_met(loop: Gridworld) -> None:
    """The reward compares the goal with a place of another layout and is never met."""
    loop.reward = lambda arrived: 0.0 * arrived


def huge_rewards(loop: Gridworld) -> None:
    """Rewards in cents and not in units: the critic chases numbers of thousands."""
    loop.reward = lambda arrived: 3000.0 * arrived - 30.0


def critic_pushed_off(loop: Gridworld) -> None:
    """The value loss has the wrong sign: the critic runs away from the returns."""
    loop.value_scale = -0.5


INIT = [
    Run(
        "bad_init",
        Config("shapes", epochs=8, lr=1e-3, model={"depth": 2}),
        "csv_steps",
        "first loss of hundreds against ln 5",
        "json",
        NORM,
        (scaled_weights(12.0),),
    ),
    Run(
        "bad_init",
        Config("charlm", epochs=8, lr=3e-3),
        "tensorboard",
        "first loss far above ln 20",
        "yaml",
        NORM,
        (scaled_weights(60.0, last=True),),
    ),
    Run(
        "bad_init",
        Config("shapes", epochs=8, lr=1e-3, data={"classes": 10}),
        "metriclogger",
        "first loss far above ln 10",
        "args",
        NORM,
        (scaled_weights(60.0, last=True),),
    ),
    Run(
        "bad_init",
        Config("graph", epochs=120, batch_size=1, lr=1e-2, log_every=1),
        "prints",
        "first loss far above ln 4",
        "",
        NORM,
        (scaled_weights(25.0),),
    ),
    Run(
        "vanishing_gradients",
        Config("shapes", epochs=8, lr=1e-3, model={"depth": 12, "act": "sigmoid"}),
        "csv_steps",
        "first layer's gradient many decades below the last's; loss at ln 5",
        "json",
        LAYERS,
        (layer_norms,),
    ),
    Run(
        "vanishing_gradients",
        Config("regression", epochs=12, optimizer="sgd", lr=0.02, model={"depth": 10, "act": "sigmoid"}),
        "loguru",
        "first layer's gradient many decades below the last's",
        "args",
        LAYERS,
        (layer_norms,),
    ),
    Run(
        "vanishing_gradients",
        Config("shapes", epochs=8, optimizer="sgd", lr=0.02, model={"depth": 14, "act": "tanh"}),
        "tensorboard",
        "first layer's gradient vanishes; loss at ln 5",
        "",
        LAYERS,
        (scaled_weights(0.4), layer_norms),
    ),
    Run(
        "dead_units",
        Config("regression", epochs=10, lr=1e-3),
        "jsonl",
        "all units are zero, loss at the variance",
        "yaml",
        DEAD,
        (hidden_bias(-6.0), zero_share),
    ),
    Run(
        "dead_units",
        Config("shapes", epochs=8, lr=1e-3, model={"depth": 3}),
        "csv_steps",
        "dead share near one, loss at ln 5",
        "json",
        DEAD,
        (hidden_bias(-4.0), zero_share),
    ),
    Run(
        "too_little_capacity",
        Config("regression", epochs=20, lr=1e-2, model={"hidden": 1, "depth": 1}),
        "keras",
        "train and val level off together far above the noise",
        "json",
        NORM,
    ),
    Run(
        "too_little_capacity",
        Config("shapes", epochs=14, lr=5e-3, data={"classes": 10}, model={"hidden": 2, "depth": 1}),
        "metriclogger",
        "train and val level off together at poor accuracy",
        "args",
        NORM,
    ),
    Run(
        "too_little_capacity",
        Config("forecast", epochs=20, lr=1e-2, model={"hidden": 1}),
        "lightning",
        "train and val level off together far above the noise",
        "yaml",
        NORM,
    ),
    Run(
        "overfitting",
        Config("shapes", epochs=25, lr=2e-3, batch_size=16, data={"n_train": 96, "noise": 1.0}, log_every=3),
        "tensorboard",
        "train falls to zero, val rises",
        "yaml",
        NORM,
        also=("no_signal",),
    ),
    Run(
        "overfitting",
        Config(
            "regression", epochs=40, lr=3e-3, batch_size=16, data={"n_train": 96}, model={"hidden": 128}, log_every=3
        ),
        "csv_epochs",
        "train falls to zero, val stays where it was after an epoch",
        "json",
        NORM,
    ),
    Run(
        "overfitting",
        Config("fraud", epochs=30, lr=3e-3, data={"n_train": 320, "share": 0.3}, model={"hidden": 128}, log_every=5),
        "logging",
        "train falls, val loss rises manyfold",
        "args",
        NORM,
    ),
    Run(
        "overfitting",
        Config("speech", epochs=30, lr=8e-3, batch_size=16, data={"n_train": 48}, log_every=2),
        "history",
        "train falls below val, which falls on slowly",
        "",
        NORM,
        weak=True,
    ),
]

ACTING = [
    Run(
        "entropy_collapse",
        Config("gridworld", epochs=20, batch_size=16, lr=5e-2, log_every=4, model={"entropy_coef": -0.05}),
        "csv_steps",
        "entropy near zero at once under a negative entropy bonus, though the goal is found",
        "yaml",
        RL,
        also=("lr_too_high",),
    ),
    Run(
        "entropy_collapse",
        Config("gridworld", epochs=20, batch_size=16, lr=1e-2, log_every=4, model={"entropy_coef": -0.2}),
        "tensorboard",
        "entropy near zero before the goal is learnt",
        "",
        RL,
        also=("exploration_failure",),
    ),
    Run(
        "exploration_failure",
        Config("gridworld", epochs=16, batch_size=12, lr=5e-3, log_every=4, data={"side": 24}),
        "jsonl",
        "no goal is ever met: reward stays at the cost of moving, length at the limit",
        "json",
        RL,
        also=("reward_broken",),
    ),
    Run(
        "exploration_failure",
        Config(
            "gridworld", epochs=16, batch_size=12, lr=1e-2, log_every=4, data={"side": 30}, model={"entropy_coef": 0.0}
        ),
        "loguru",
        "reward stays at the cost of moving, length at the limit",
        "args",
        RL,
        also=("entropy_collapse",),
    ),
    Run(
        "reward_broken",
        Config("gridworld", epochs=16, batch_size=16, lr=5e-3, log_every=4),
        "csv_steps",
        "reward tells the episode's length alone, which only grows",
        "yaml",
        RL,
        (constant_reward,),
        also=("reward_hacking",),
    ),
    Run(
        "reward_broken",
        Config("gridworld", epochs=16, batch_size=12, lr=5e-3, log_every=4),
        "wandb",
        "reward is exactly zero throughout though episodes end early",
        "yaml",
        RL,
        (goal_never_met,),
        ("exploration_failure",),
    ),
    Run(
        "value_instability",
        Config("gridworld", epochs=18, batch_size=16, lr=5e-3, log_every=4),
        "tensorboard",
        "value loss of millions, explained variance zero",
        "json",
        RL,
        (huge_rewards,),
    ),
    Run(
        "value_instability",
        Config("gridworld", epochs=18, batch_size=12, lr=5e-3, log_every=4),
        "logging",
        "value loss grows without bound",
        "args",
        RL,
        (critic_pushed_off,),
        ("wrong_loss",),
    ),
]

RUNS: list[Run] = INIT + ACTING
