#!/usr/bin/env bash
# A loss below zero that stands still counts as improved at each step: the learning rate is never lowered.
#
# Guess: a scheduler that waits for a plateau lowers the learning rate of any loss that is flat or rises.
# Seen:  the threshold is relative: the best loss is multiplied by 1 - 1e-4. Below zero that makes it higher, so that
#        the same loss, or a slightly worse one, beats it. So it is in PyTorch and in Optax, as with a negative
#        SI-SDR or log likelihood. With `threshold_mode="abs"` PyTorch lowers it.
# With:  torch 2.13.0, optax 0.2.8, jax 0.10.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 optax==0.2.8 jax==0.10.2 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import jax.numpy as jnp
import optax
import torch


def of_torch(losses, mode="rel"):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=5, threshold_mode=mode)
    for loss in losses:
        scheduler.step(loss)
    return optimizer.param_groups[0]["lr"] < 1


def of_optax(losses):
    plateau = optax.contrib.reduce_on_plateau(patience=5, factor=0.1, rtol=1e-4)
    state = plateau.init(jnp.zeros(1))
    for loss in losses:
        _, state = plateau.update(jnp.zeros(1), state, value=jnp.asarray(loss))
    return bool(state.scale < 1)


for name, losses in {
    "flat at 10": [10.0] * 50,
    "flat at -10": [-10.0] * 50,
    "from -10 up to -9.95": [-10 + 0.0005 * step for step in range(100)],
}.items():
    print(name, "| lowered: torch", of_torch(losses), "optax", of_optax(losses), "torch abs", of_torch(losses, "abs"))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
flat at 10 | lowered: torch True optax True torch abs True
flat at -10 | lowered: torch False optax False torch abs True
from -10 up to -9.95 | lowered: torch False optax False torch abs True
SEEN
