#!/usr/bin/env bash
# A cost that an environment begins with a plain 0 has no decimals in Tianshou's buffer: 0.7 is 0 for the whole run.
#
# Guess: a replay buffer keeps each number of `info` as the environment gave it, the 0 of the first step as 0.0.
# Seen:  the first step decides the kind of each number for good, and NumPy cuts what comes later: 0.7 and 0.9 are 0,
#        and 1.9 is 1. A policy that is to keep costs low sees a mean of 0.25 in place of 0.875. Actions that are added
#        by hand lose theirs after a first 0; rewards are kept. A key that comes late, as `success` with the last step
#        of an episode, is 0 in all other rows, like a measured 0. Nothing is said of either.
# With:  tianshou 2.0.1, gymnasium 1.4.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q tianshou==2.0.1 gymnasium==1.4.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import gymnasium
import numpy
from gymnasium.spaces import Box
from tianshou.algorithm.algorithm_base import RandomActionPolicy
from tianshou.data import Batch, Collector, ReplayBuffer


class FourSteps(gymnasium.Env):
    """Episodes of four steps with rising costs."""

    observation_space = action_space = Box(-1, 1, (1,))

    def __init__(self, costs):
        self.costs = costs

    def reset(self, *, seed=None, options=None):
        """Begin an episode."""
        self.left = list(self.costs)
        return numpy.zeros(1, "float32"), {}

    def step(self, action):
        """Pay one cost, and end with the last."""
        info = {"cost": self.left.pop(0)}
        if not self.left:
            info["success"] = 1.0
        return numpy.zeros(1, "float32"), 1.0, not self.left, False, info


for costs in ([0, 0.7, 0.9, 1.9], [0.0, 0.7, 0.9, 1.9]):
    environment, buffer, by_hand = FourSteps(costs), ReplayBuffer(8), ReplayBuffer(8)
    collector = Collector(RandomActionPolicy(environment.action_space), environment, buffer)
    collector.reset()
    collector.collect(n_step=8)
    print("costs", *costs, "| kept", *buffer.info.cost[4:], f"mean {buffer.info.cost.mean()}")
    print("  success", *buffer.info.success[4:], end=" | ")
    for value in costs:
        row = {"obs": numpy.zeros(1), "obs_next": numpy.zeros(1), "terminated": False, "truncated": False}
        by_hand.add(Batch(**row, act=value, rew=value, info={}))
    print("actions by hand", *by_hand.act[:4], "rewards", *by_hand.rew[:4])
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
costs 0 0.7 0.9 1.9 | kept 0 0 0 1 mean 0.25
  success 0.0 0.0 0.0 1.0 | actions by hand 0 0 0 1 rewards 0.0 0.7 0.9 1.9
costs 0.0 0.7 0.9 1.9 | kept 0.0 0.7 0.9 1.9 mean 0.875
  success 0.0 0.0 0.0 1.0 | actions by hand 0.0 0.7 0.9 1.9 rewards 0.0 0.7 0.9 1.9
SEEN
