#!/usr/bin/env bash
# skrl logs a mean total reward of 2.0 for ten episodes with the rewards 0 to 9: the first of them counts the most.
#
# Guess: `Reward / Total reward (mean)` is the mean of the episodes that ended since the last row: 4.5.
# Seen:  from the first end of an episode on, each step adds the mean of the episodes so far, and the row is the mean of
#        these means. The episode that ends first is in all of them, the last one in one. So a policy that improves by 1
#        per episode is shown 2.5 too low in each row, and one that gets worse 2.5 too high. A policy that fails at once
#        and then wins 100, again and again, has 0.5 in place of 50. The rows of the maximum and the minimum are right.
#        The best checkpoint is chosen by that mean.
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
from skrl.agents.torch.dqn import DQN, DQN_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, Model
from skrl.trainers.torch import SequentialTrainer
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


class Task(gymnasium.Env):
    """Episodes whose lengths and total rewards are given; the total is paid at the end."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, episodes):
        self.episodes = iter(episodes)

    def reset(self, seed=None, options=None):
        self.left, self.total = next(self.episodes)
        return np.ones(1, dtype=np.float32), {}

    def step(self, action):
        self.left -= 1
        ends = self.left == 0
        return np.ones(1, dtype=np.float32), float(self.total) * ends, ends, False, {}


class Value(DeterministicMixin, Model):
    def __init__(self, spaces):
        Model.__init__(self, **spaces, device="cpu")
        DeterministicMixin.__init__(self)
        self.value = torch.nn.Linear(1, 2)

    def compute(self, inputs, role=""):
        return self.value(inputs["observations"]), {}


runs = {
    "a reward of 1 more in each episode": [(10, reward) for reward in range(31)],
    "a reward of 1 less in each episode": [(10, 30 - reward) for reward in range(31)],
    "a failure after 5 steps, then a success": [(5, 0), (95, 100)] * 3 + [(5, 0)],
}
for name, episodes in runs.items():
    env = wrap_env(Task(episodes))
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
    experiment = {"directory": ".", "experiment_name": name, "write_interval": 100, "checkpoint_interval": 0}
    agent = DQN(
        models={"q_network": Value(spaces), "target_q_network": Value(spaces)},
        memory=RandomMemory(memory_size=100, num_envs=1, device="cpu"),
        cfg=DQN_CFG(learning_starts=10_000, random_timesteps=10_000, experiment=experiment),
        **spaces,
        device="cpu",
    )
    settings = {"timesteps": 300, "headless": True, "disable_progressbar": True}
    SequentialTrainer(cfg=settings, env=env, agents=agent).train()
    agent.writer.close()
    log = EventAccumulator(name)
    log.Reload()
    print(name)
    ends = np.cumsum([length for length, _ in episodes])
    for number, point in enumerate(log.Scalars("Reward / Total reward (mean)")):
        ended = [total for (_, total), end in zip(episodes, ends) if 100 * number < end <= 100 * (number + 1)]
        print(f"  step {point.step}: logged {point.value:.2f}, mean of the {len(ended)} episodes {np.mean(ended):.2f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
a reward of 1 more in each episode
  step 100: logged 2.03, mean of the 10 episodes 4.50
  step 200: logged 12.03, mean of the 10 episodes 14.50
  step 300: logged 22.03, mean of the 10 episodes 24.50
a reward of 1 less in each episode
  step 100: logged 27.97, mean of the 10 episodes 25.50
  step 200: logged 17.97, mean of the 10 episodes 15.50
  step 300: logged 7.97, mean of the 10 episodes 5.50
a failure after 5 steps, then a success
  step 100: logged 0.52, mean of the 2 episodes 50.00
  step 200: logged 0.52, mean of the 2 episodes 50.00
  step 300: logged 0.52, mean of the 2 episodes 50.00
SEEN
