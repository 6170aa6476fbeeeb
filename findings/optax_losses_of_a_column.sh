#!/usr/bin/env bash
# Optax refuses a column against a row in its squared error, and takes it in the Huber loss, where nothing is learnt.
#
# Guess: outputs of shape (8, 1) and labels of shape (8,) are refused, or taken for pairs, by all losses of a library.
# Seen:  `squared_error` stops. `huber_loss`, `log_cosh`, `hinge_loss` and both sigmoid losses compare each output with
#        each label, 64 pairs for 8 rows: outputs that are right have a loss, and one constant has less. PyTorch
#        warns for the squared and the Huber loss; its Gaussian loss says nothing.
# With:  optax 0.2.8, jax 0.10.2, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q optax==0.2.8 jax==0.10.2 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import warnings
from functools import partial

import jax.numpy as jnp
import optax
import torch

labels = [0.0, 1.0] * 4


def show(name, loss, column, row):
    """Print the loss of right outputs as a row, as a column, and of one constant as a column."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            found = [round(float(loss(outputs, row).mean()), 3) for outputs in (row, column, column * 0 + 0.5)]
        except (ValueError, RuntimeError):
            found = ["refused"]
    print(name, *found, *["| warns"][: len(heard)])


for name in "squared_error l2_loss huber_loss log_cosh".split():
    show(f"optax {name}", getattr(optax, name), jnp.array(labels)[:, None], jnp.array(labels))
for name in "mse_loss huber_loss gaussian_nll_loss".split():
    loss = getattr(torch.nn.functional, name)
    if name.startswith("gaussian"):
        loss = partial(lambda loss, outputs, goal: loss(outputs, goal, torch.ones_like(outputs)), loss)
    column, row = torch.tensor(labels)[:, None], torch.tensor(labels)
    show(f"torch {name}", loss, column, row)
for name in "sigmoid_binary_cross_entropy hinge_loss sigmoid_focal_loss".split():
    sure, goal = jnp.array(labels) * 20 - 10, jnp.array(labels) * 2 - 1 if name == "hinge_loss" else jnp.array(labels)
    loss = getattr(optax, name)
    print(f"optax {name}", *(round(float(loss(outputs, goal).mean()), 3) for outputs in (sure, sure[:, None])))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
optax squared_error refused
optax l2_loss refused
optax huber_loss 0.0 0.25 0.125
optax log_cosh 0.0 0.217 0.12
torch mse_loss 0.0 0.5 0.25 | warns
torch huber_loss 0.0 0.25 0.125 | warns
torch gaussian_nll_loss 0.0 0.25 0.125
optax sigmoid_binary_cross_entropy 0.0 5.0
optax hinge_loss 0.0 5.5
optax sigmoid_focal_loss 0.0 5.0
SEEN
