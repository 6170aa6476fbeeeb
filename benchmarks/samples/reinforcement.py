"""Train an agent as it should be and with a far too high learning rate, and keep what its library writes.

Run as `python -m benchmarks.samples.reinforcement LIBRARY FOLDER` with the package installed; see
`benchmarks/samples/frameworks.py` for what is kept.
"""

# ruff: noqa: ANN401 - the classes of frameworks have no types, and their names are written small
from __future__ import annotations

import logging
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.samples.frameworks import logged_losses, printed_to, write_samples
from benchmarks.samples.trainers import emptied


def d3rlpy(factor: float, path: Path) -> None:
    """d3rlpy's lines, its folder of a table for each metric, and its `params.json`."""
    import d3rlpy as package
    import numpy as np

    package.seed(0)
    random = np.random.default_rng(0)
    observations = random.normal(size=(600, 4)).astype("float32")
    dataset = package.dataset.MDPDataset(
        observations, (observations[:, :1] > 0).astype("int64"), observations[:, 0] * 0.1,
        (np.arange(600) % 20 == 19).astype("float32"),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as place, printed_to(path):
        agent = package.algos.DQNConfig(learning_rate=6e-5 * factor, batch_size=32).create(device="cpu")
        agent.fit(
            dataset, n_steps=500, n_steps_per_epoch=50, show_progress=False, save_interval=100,
            logger_adapter=package.logging.FileAdapterFactory(place),
        )  # fmt: skip
        (run,) = Path(place).iterdir()
        shutil.copytree(run, emptied(path), dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.d3"))


def pfrl(factor: float, path: Path) -> None:
    """PFRL's table `scores.txt`, and its first lines."""
    import gymnasium
    import torch
    from pfrl import agents, experiments, explorers, q_functions, replay_buffers, utils

    class Environment(gymnasium.Wrapper):  # type: ignore[misc] # of the interface that PFRL was written for
        def reset(self, **_: Any) -> Any:
            return self.env.reset(seed=0)[0]

        def step(self, action: Any) -> Any:
            observation, reward, ended, cut, more = self.env.step(action)
            return observation, reward, ended or cut, more

    utils.set_random_seed(0)
    environment = Environment(gymnasium.make("CartPole-v1"))
    q_function = q_functions.FCStateQFunctionWithDiscreteAction(4, 2, 32, 1)
    agent = agents.DQN(
        q_function, torch.optim.Adam(q_function.parameters(), 1e-3 * factor), replay_buffers.ReplayBuffer(10000), 0.99,
        explorers.ConstantEpsilonGreedy(0.2, environment.action_space.sample), replay_start_size=64, minibatch_size=32,
        target_update_interval=100, phi=lambda x: x.astype("float32"),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as place, printed_to(path):
        logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="", force=True)
        experiments.train_agent_with_evaluation(
            agent, environment, 1500, None, 3, 150, place, eval_env=Environment(gymnasium.make("CartPole-v1"))
        )
        shutil.copy(Path(place) / "scores.txt", emptied(path) / "scores.txt")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:34]))  # the first evaluations are enough


def tianshou(factor: float, path: Path) -> None:
    """Tianshou's event file."""
    import gymnasium
    import numpy as np
    import torch
    from tianshou.algorithm import DQN
    from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
    from tianshou.algorithm.optim import AdamOptimizerFactory
    from tianshou.data import Collector, VectorReplayBuffer
    from tianshou.env import DummyVectorEnv
    from tianshou.trainer import OffPolicyTrainerParams
    from tianshou.utils import TensorboardLogger
    from tianshou.utils.net.common import Net
    from torch.utils.tensorboard import SummaryWriter

    np.random.seed(0)
    torch.manual_seed(0)
    environment = gymnasium.make("CartPole-v1")
    training, test = (DummyVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 2) for _ in range(2))
    training.seed(0)
    test.seed(0)
    network = Net(state_shape=(4,), action_shape=2, hidden_sizes=[32])
    policy = DiscreteQLearningPolicy(
        model=network, action_space=environment.action_space, eps_training=0.1, eps_inference=0.0
    )
    algorithm = DQN(policy=policy, optim=AdamOptimizerFactory(lr=3e-3 * factor), gamma=0.9, target_update_freq=100)
    folder = emptied(path)
    with tempfile.TemporaryDirectory() as place, printed_to(Path(place) / "bars"):
        logger = TensorboardLogger(SummaryWriter(str(folder)))
        train_collector = Collector(algorithm, training, VectorReplayBuffer(2000, 2), exploration_noise=True)
        train_collector.reset()
        train_collector.collect(n_step=64, random=True)
        algorithm.run_training(
            OffPolicyTrainerParams(
                training_collector=train_collector,
                test_collector=Collector(algorithm, test),
                max_epochs=8,
                epoch_num_steps=300,
                collection_step_num_env_steps=10,
                test_step_num_episodes=2,
                batch_size=32,
                update_step_num_gradient_steps_per_sample=0.5,
                logger=logger,
            )
        )


def torchrl(factor: float, path: Path) -> None:
    """TorchRL's CSVLogger: a table for each scalar; the losses are those of the trackers."""
    from torchrl.record.loggers.csv import CSVLogger

    with tempfile.TemporaryDirectory() as place:
        logger = CSVLogger("run", log_dir=place)
        logger.log_hparams({"lr": 0.001 * factor, "batch_size": 32})
        for step, loss in enumerate(logged_losses(factor)):
            logger.log_scalar("train/loss", loss, step=10 * step)
            logger.log_scalar("eval/reward", float(step), step=10 * step)
        shutil.copytree(Path(place) / "run", emptied(path), dirs_exist_ok=True)


def mushroom_rl(factor: float, path: Path) -> None:
    """MushroomRL's lines of an agent of the table, by epoch."""
    import numpy as np
    from mushroom_rl.algorithms.value import QLearning
    from mushroom_rl.core import Core, Logger
    from mushroom_rl.environments import GridWorld
    from mushroom_rl.policy import EpsGreedy
    from mushroom_rl.utils.dataset import compute_J
    from mushroom_rl.utils.parameters import Parameter

    np.random.seed(0)
    environment = GridWorld(width=3, height=3, goal=(2, 2), start=(0, 0))
    agent = QLearning(environment.info, EpsGreedy(Parameter(0.2)), Parameter(min(0.001 * factor, 2.0)))
    core = Core(agent, environment)
    with tempfile.TemporaryDirectory() as place, printed_to(path):
        logger = Logger("run", results_dir=place)
        for epoch in range(10):
            core.learn(n_steps=200, n_steps_per_fit=1, quiet=True)
            rows = core.evaluate(n_steps=200, quiet=True)
            discounted, whole = (float(np.mean(compute_J(rows, gamma))) for gamma in (environment.info.gamma, 1.0))
            logger.epoch_info(epoch, J=discounted, R=whole)


def rllib(factor: float, path: Path) -> None:
    """A trial's table and settings of RLlib's new stack; `result.json` repeats both in each record."""
    import ray
    from ray import tune
    from ray.rllib.algorithms.ppo import PPOConfig

    config = PPOConfig().environment("CartPole-v1").env_runners(num_env_runners=0).debugging(seed=0)
    config = config.training(
        lr=3e-4 * factor, train_batch_size_per_learner=200, minibatch_size=64, num_epochs=2, grad_clip=0.5
    )
    with tempfile.TemporaryDirectory() as place:
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, object_store_memory=100_000_000)
        tune.Tuner(
            "PPO", param_space=config,
            run_config=tune.RunConfig(stop={"training_iteration": 8}, storage_path=place, name="experiment", verbose=0),
        ).fit()  # fmt: skip
        ray.shutdown()
        (trial,) = (folder for folder in (Path(place) / "experiment").iterdir() if folder.is_dir())
        folder = emptied(path)
        for name in ("progress.csv", "params.json"):
            shutil.copy(trial / name, folder)


LIBRARIES: dict[str, Callable[[float, Path], None]] = {
    function.__name__: function for function in (d3rlpy, pfrl, tianshou, torchrl, mushroom_rl, rllib)
}

if __name__ == "__main__":
    write_samples(LIBRARIES)
