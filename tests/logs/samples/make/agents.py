"""Make the samples of Stable-Baselines3 by running it (2.9 was used).

PPO and DQN on CartPole, logged as CSV, JSON and tables, with the episode monitor, and the evaluations of
another PPO. (In so few steps DQN learns little.)
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from tests.logs.samples.make.keeping import folder_of, tell, terminal

OPTIONS: dict[str, dict[str, Any]] = {"ppo": {"n_steps": 512, "learning_rate": 1e-3}, "dqn": {"learning_starts": 200}}


def train(kind: str, kept: Path, steps: int) -> None:
    """Train an agent and keep its logs."""
    import stable_baselines3
    from gymnasium import make
    from stable_baselines3.common import logger, monitor

    with tempfile.TemporaryDirectory() as place:
        output = Path(place)
        with terminal(kept / "stdout.log"):
            environment = monitor.Monitor(make("CartPole-v1"), str(output / "0"))
            agent = getattr(stable_baselines3, kind.upper())(
                "MlpPolicy", environment, seed=1, device="cpu", verbose=1, **OPTIONS[kind]
            )
            agent.set_logger(logger.configure(place, ["stdout", "csv", "json"]))
            agent.learn(steps, log_interval=1 if kind == "ppo" else 20)
        for file in ("progress.csv", "progress.json", "0.monitor.csv"):
            if kind == "ppo" or "monitor" not in file:
                shutil.copy(output / file, kept / file)


def evaluate(kept: Path) -> None:
    """Train an agent for little, and keep what its evaluations were."""
    from gymnasium import make
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import EvalCallback

    callback = EvalCallback(make("CartPole-v1"), eval_freq=512, n_eval_episodes=5, log_path=str(kept), verbose=0)
    PPO("MlpPolicy", make("CartPole-v1"), n_steps=256, seed=1, device="cpu").learn(4096, callback=callback)


if __name__ == "__main__":
    folder = folder_of("stable_baselines3")
    for kind, steps in (("ppo", 8192), ("dqn", 2500)):
        (folder / kind).mkdir()
        train(kind, folder / kind, steps)
    (folder / "evaluated").mkdir()
    evaluate(folder / "evaluated")
    tell(folder)
