#!/usr/bin/env bash
# Half of the steps of a vector of one-step episodes are no steps in Gymnasium: reward 0, and the action is ignored.
#
# Guess: a vector of environments begins the next episode at once, as it did up to Gymnasium 0.29 and as it does in
#        Stable-Baselines3: each step of a task that always pays 1 has reward 1.
# Seen:  the step after the end of an episode only resets: it has reward 0 and is not done. A loop that stores each step
#        learns from rows whose action did nothing; a mean reward by step is 0.5 in place of 1, and 0.91 with episodes of
#        ten. With `AutoresetMode.SAME_STEP` it is 1.
# With:  gymnasium 1.4.0, stable-baselines3 2.9.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q gymnasium==1.4.0 stable-baselines3==2.9.2 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import functools

import gymnasium
import numpy
from stable_baselines3.common.vec_env import DummyVecEnv


class Paying(gymnasium.Env):
    observation_space, action_space = gymnasium.spaces.Discrete(1), gymnasium.spaces.Discrete(2)

    def __init__(self, length):
        self.length = length

    def reset(self, *, seed=None, options=None):
        self.step_number, self.actions = 0, getattr(self, "actions", 0)
        return 0, {}

    def step(self, action):
        self.step_number += 1
        self.actions += 1
        return 0, 1.0, self.step_number == self.length, False, {}


for length in (1, 10):
    make = [functools.partial(Paying, length)] * 2
    same = gymnasium.vector.AutoresetMode.SAME_STEP
    for name, vector in {
        "gymnasium": gymnasium.vector.SyncVectorEnv(make),
        "gymnasium SAME_STEP": gymnasium.vector.SyncVectorEnv(make, autoreset_mode=same),
        "stable-baselines3": DummyVecEnv(make),
    }.items():
        vector.reset()
        rewards = numpy.array([vector.step(numpy.zeros(2, int))[1] for _ in range(110)])
        print("episodes of", length, name, "| mean reward", round(float(rewards.mean()), 2), end=" ")
        print("| actions that reached an environment", vector.envs[0].actions, "of", len(rewards))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
episodes of 1 gymnasium | mean reward 0.5 | actions that reached an environment 55 of 110
episodes of 1 gymnasium SAME_STEP | mean reward 1.0 | actions that reached an environment 110 of 110
episodes of 1 stable-baselines3 | mean reward 1.0 | actions that reached an environment 110 of 110
episodes of 10 gymnasium | mean reward 0.91 | actions that reached an environment 100 of 110
episodes of 10 gymnasium SAME_STEP | mean reward 1.0 | actions that reached an environment 110 of 110
episodes of 10 stable-baselines3 | mean reward 1.0 | actions that reached an environment 110 of 110
SEEN
