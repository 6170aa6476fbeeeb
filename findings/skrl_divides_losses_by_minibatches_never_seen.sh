#!/usr/bin/env bash
# skrl logs an entropy loss of -0.04 where it is -1.42: PPO divides by minibatches that it stopped before.
#
# Guess: `Loss / Value loss` is the mean over the minibatches that were trained on; a stop by `kl_threshold` leaves
#        fewer of them in it, and the mean at about what it was.
# Seen:  the sum over those that were trained is divided by all that were planned, epochs times minibatches. Where the
#        threshold ends epochs early, each loss is low by the share that was done: 1 of 32 in the first update. So the
#        entropy loss of a policy of constant width moves from -0.04 to -0.49. The value loss rises from 4 to 31, while
#        that of the same critic without a threshold falls from 92 to 76. A run whose steps become smaller, so that
#        fewer epochs end early, seems to get worse.
# With:  skrl 2.1.1, gymnasium 1.4.0, tensorboard 2.21.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q skrl==2.1.1 gymnasium==1.4.0 tensorboard==2.21.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import gymnasium
import numpy as np
import torch
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
from skrl.trainers.torch import SequentialTrainer
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


class Task(gymnasium.Env):
    """Episodes of ten steps; each of them pays 1."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def reset(self, seed=None, options=None):
        self.left = 10
        return np.ones(1, dtype=np.float32), {}

    def step(self, action):
        self.left -= 1
        return np.ones(1, dtype=np.float32), 1.0, self.left == 0, False, {}


class Policy(GaussianMixin, Model):
    """A policy whose width, and so its entropy, is always the same."""

    def __init__(self, spaces):
        Model.__init__(self, **spaces, device="cpu")
        GaussianMixin.__init__(self)
        self.mean = torch.nn.Linear(1, 1)
        self.log_std = torch.nn.Parameter(torch.zeros(1), requires_grad=False)

    def compute(self, inputs, role=""):
        return self.mean(inputs["observations"]), {"log_std": self.log_std}


class Value(DeterministicMixin, Model):
    def __init__(self, spaces):
        Model.__init__(self, **spaces, device="cpu")
        DeterministicMixin.__init__(self)
        self.value = torch.nn.Linear(1, 1)

    def compute(self, inputs, role=""):
        return self.value(inputs["observations"]), {}


for threshold in (0.0, 0.0001):
    torch.manual_seed(0)
    env = wrap_env(Task())
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
    name = f"run_{threshold}"
    agent = PPO(
        models={"policy": Policy(spaces), "value": Value(spaces)},
        memory=RandomMemory(memory_size=100, num_envs=1, device="cpu"),
        cfg=PPO_CFG(
            rollouts=100,
            learning_epochs=8,
            mini_batches=4,
            learning_rate=0.01,
            entropy_loss_scale=1.0,
            kl_threshold=threshold,
            experiment={"directory": ".", "experiment_name": name, "write_interval": 100, "checkpoint_interval": 0},
        ),
        **spaces,
        device="cpu",
    )
    settings = {"timesteps": 400, "headless": True, "disable_progressbar": True}
    SequentialTrainer(cfg=settings, env=env, agents=agent).train()
    agent.writer.close()
    log = EventAccumulator(name)
    log.Reload()
    for tag in ("Loss / Entropy loss", "Loss / Value loss"):
        print("kl_threshold", threshold, tag, *(round(point.value, 2) for point in log.Scalars(tag)))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
kl_threshold 0.0 Loss / Entropy loss -1.42 -1.42 -1.42 -1.42
kl_threshold 0.0 Loss / Value loss 91.5 84.01 76.23 68.71
kl_threshold 0.0001 Loss / Entropy loss -0.04 -0.31 -0.49 -0.44
kl_threshold 0.0001 Loss / Value loss 3.55 21.22 31.36 25.88
SEEN
