#!/usr/bin/env bash
# A batch in which every label is ignored: three libraries leave three different pairs of loss and gradient.
#
# Guess: the mean over no label is 0/0, so the loss is NaN, and so is the gradient: the first such batch ends the run.
# Seen:  PyTorch's loss is NaN and its gradient exactly 0: the weights stay finite and go on as if nothing had been.
#        Keras with `ignore_class` gives 0 and 0: neither a log nor a check for NaN shows the batch.
#        Optax, with a masked mean as its documentation has it, gives NaN and NaN.
# With:  torch 2.13.0, keras 3.15.1 on jax 0.10.2, optax 0.2.8
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 keras==3.15.1 jax==0.10.2 optax==0.2.8 2>/dev/null
cat > "$folder/ignored.py" <<'PYTHON'
import os
os.environ["KERAS_BACKEND"] = "jax"
import jax, jax.numpy as jnp, keras, optax, torch
rows, weights, labels = jnp.ones((3, 4)), jnp.ones((4, 5)) * 0.1, jnp.full((3,), -100)
entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-100)
def of_keras(weights):
    return entropy(labels, rows @ weights)
def of_optax(weights):
    counted = labels >= 0
    losses = optax.softmax_cross_entropy_with_integer_labels(rows @ weights, jnp.where(counted, labels, 0))
    return (losses * counted).sum() / counted.sum()
model = torch.nn.Linear(4, 5)
loss = torch.nn.functional.cross_entropy(model(torch.ones(3, 4)), torch.full((3,), -100))
loss.backward()
print("torch", loss.item(), model.weight.grad.abs().sum().item())
for name, function in (("keras", of_keras), ("optax", of_optax)):
    print(name, float(function(weights)), float(jnp.abs(jax.grad(function)(weights)).sum()))
PYTHON
"$folder/env/bin/python" "$folder/ignored.py" 2>/dev/null | tee "$folder/seen.txt"
diff "$folder/seen.txt" - <<'SEEN' && echo "as found"
torch nan 0.0
keras 0.0 0.0
optax nan nan
SEEN
