#!/usr/bin/env bash
# Stable-Baselines3 logs an `ep_rew_mean` of 0 for each agent whose episodes earn less than 0.0000005.
#
# Guess: rewards are logged as floats, to whatever precision they have; a mean of small returns shows how they grow.
# Seen:  the `Monitor` that each environment is wrapped in rounds the return of an episode to six decimals before
#        anything sees it. Whether episodes earn 0.0000001 or four times as much, each row of the log has 0.0, as
#        monitor.csv and the mean of `evaluate_policy` have. Returns from there on are whole millionths. Where rewards
#        are small, a run that learns looks like one that does not; the model itself is trained on the rewards as they
#        are.
# With:  stable-baselines3 2.9.2, gymnasium 1.4.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q stable-baselines3==2.9.2 gymnasium==1.4.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import csv

import gymnasium
import numpy
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

torch.set_num_threads(1)


class Steady(gymnasium.Env):
    """Episodes of ten steps with the same reward in each."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, earned):
        self.earned = earned

    def reset(self, seed=None, options=None):
        self.steps = 0
        return numpy.zeros(1, "float32"), {}

    def step(self, action):
        self.steps += 1
        return numpy.zeros(1, "float32"), self.earned / 10, self.steps == 10, False, {}


for earned in (1e-7, 4e-7, 6e-7, 1.4e-6, 2.6e-6, 1e-3):
    model = PPO("MlpPolicy", Monitor(Steady(earned), "episodes"), n_steps=64, batch_size=64, n_epochs=1)
    model.learn(64)
    logged = numpy.mean([episode["r"] for episode in model.ep_info_buffer])
    with open("episodes.monitor.csv") as file:
        next(file)
        in_file = [float(row["r"]) for row in csv.DictReader(file)]
    evaluated, _ = evaluate_policy(model, Monitor(Steady(earned)), 2)
    plain, _ = evaluate_policy(model, Steady(earned), 2, warn=False)
    print(f"episodes earn {earned:.1e} | ep_rew_mean {logged:.1e} | monitor.csv {in_file[0]:.1e}", end=" | ")
    print(f"evaluate_policy {evaluated:.1e}, without Monitor {plain:.1e}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
episodes earn 1.0e-07 | ep_rew_mean 0.0e+00 | monitor.csv 0.0e+00 | evaluate_policy 0.0e+00, without Monitor 1.0e-07
episodes earn 4.0e-07 | ep_rew_mean 0.0e+00 | monitor.csv 0.0e+00 | evaluate_policy 0.0e+00, without Monitor 4.0e-07
episodes earn 6.0e-07 | ep_rew_mean 1.0e-06 | monitor.csv 1.0e-06 | evaluate_policy 1.0e-06, without Monitor 6.0e-07
episodes earn 1.4e-06 | ep_rew_mean 1.0e-06 | monitor.csv 1.0e-06 | evaluate_policy 1.0e-06, without Monitor 1.4e-06
episodes earn 2.6e-06 | ep_rew_mean 3.0e-06 | monitor.csv 3.0e-06 | evaluate_policy 3.0e-06, without Monitor 2.6e-06
episodes earn 1.0e-03 | ep_rew_mean 1.0e-03 | monitor.csv 1.0e-03 | evaluate_policy 1.0e-03, without Monitor 1.0e-03
SEEN
