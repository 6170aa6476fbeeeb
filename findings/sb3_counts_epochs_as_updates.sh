#!/usr/bin/env bash
# The `n_updates` that Stable-Baselines3 logs counts passes over the data in PPO, and steps of the optimizer in DQN.
#
# Guess: it is the number of gradient steps: 1,280 after four rollouts of 2,048 rows, in ten passes of batches of 64.
# Seen:  PPO logs 40 where its optimizer took 1,280 steps, and it would log 40 with any size of batches. A2C and DQN log
#        what their optimizers took. A curve over `n_updates` so makes PPO look 32 times as fast as it is.
# With:  stable-baselines3 2.9.2, gymnasium 1.4.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q stable-baselines3==2.9.2 gymnasium==1.4.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
from stable_baselines3 import A2C, DQN, PPO


def compare(name, model, steps):
    taken = []
    model.policy.optimizer.register_step_post_hook(lambda *_: taken.append(1))
    model.learn(steps)
    print(name, "| n_updates", model._n_updates, "optimizer", len(taken))


compare("PPO", PPO("MlpPolicy", "CartPole-v1", seed=0, device="cpu"), 4 * 2048)
compare("A2C", A2C("MlpPolicy", "CartPole-v1", seed=0, device="cpu"), 500)
compare("DQN", DQN("MlpPolicy", "CartPole-v1", seed=0, device="cpu", learning_starts=0, gradient_steps=2), 400)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
PPO | n_updates 40 optimizer 1280
A2C | n_updates 100 optimizer 100
DQN | n_updates 200 optimizer 200
SEEN
