#!/usr/bin/env bash
# The `train/loss` of Stable-Baselines3's PPO is of one minibatch, while its parts are means of all.
#
# Guess: `train/loss` is policy_gradient_loss + vf_coef * value_loss + ent_coef * entropy_loss, as each row logs them.
# Seen:  it is the loss of the last minibatch of the last epoch; the three parts are means over the minibatches of all
#        epochs. Where there is one minibatch and one epoch, they agree. The first row of progress.csv has none of them:
#        a row is written between its rollout and the update that learns from it.
# With:  stable-baselines3 2.9.2, gymnasium 1.4.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q stable-baselines3==2.9.2 gymnasium==1.4.0 torch==2.13.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import csv

from stable_baselines3 import PPO
from stable_baselines3.common.logger import configure

for minibatch, epochs in ((64, 10), (256, 1)):
    options = {"n_steps": 256, "batch_size": minibatch, "n_epochs": epochs, "ent_coef": 0.01, "vf_coef": 0.5}
    model = PPO("MlpPolicy", "CartPole-v1", seed=0, device="cpu", **options)
    model.set_logger(configure(f"run{minibatch}", ["csv"]))
    model.learn(1024)
    with open(f"run{minibatch}/progress.csv") as file:
        first, *rows = csv.DictReader(file)
    away = []
    for row in rows:
        policy, value, entropy = (
            float(row[f"train/{name}_loss"]) for name in ("policy_gradient", "value", "entropy")
        )
        away.append(abs(float(row["train/loss"]) / (policy + 0.5 * value + 0.01 * entropy) - 1))
    print("minibatches", 256 // minibatch * epochs, "| loss is the sum of its parts", max(away) < 1e-3, end=" ")
    print("| first row has", repr(first["train/loss"]))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
minibatches 40 | loss is the sum of its parts False | first row has ''
minibatches 1 | loss is the sum of its parts True | first row has ''
SEEN
