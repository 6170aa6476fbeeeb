#!/usr/bin/env bash
# RAdam, which is taken so that no warm-up is needed, begins with five steps as long as the gradient: 1.0, not 0.001.
#
# Guess: RAdam begins more carefully than Adam. No step is longer than the rate, and no scale of the loss matters.
# Seen:  PyTorch and Optax make steps 1 to 5 without any division by the size of gradients: plain momentum. A loss that
#        is a sum, with gradients of 1,000, moves each weight by 1,000 times the rate. From step 6 on it is a thirtieth
#        of the rate. Steps 1 to 5 of the RAdam in pytorch_optimizer are zero: three runs, one name.
# With:  torch 2.13.0, optax 0.2.8, jax 0.10.2, pytorch_optimizer 3.7.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
packages="torch==2.13.0 optax==0.2.8 jax==0.10.2 pytorch_optimizer==3.7.0"
"$folder/env/bin/pip" install -q $packages 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import jax.numpy
import optax
import pytorch_optimizer
import torch


def steps_of_torch(kind: type, gradient: float) -> list[float]:
    """Return how far each of eight steps moves a weight whose gradient never changes."""
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer, steps = kind([weight], lr=1e-3), []
    for _ in range(8):
        before, weight.grad = weight.item(), torch.full((1,), gradient)
        optimizer.step()
        steps.append(abs(weight.item() - before))
    return steps


def steps_of_optax(gradient: float) -> list[float]:
    optimizer, weight, steps = optax.radam(1e-3), jax.numpy.zeros(1), []
    state = optimizer.init(weight)
    for _ in range(8):
        update, state = optimizer.update(jax.numpy.full(1, gradient), state, weight)
        steps.append(abs(float(update[0])))
    return steps

for gradient in (1.0, 1000.0):
    for name, steps in {
        "Adam of torch": steps_of_torch(torch.optim.Adam, gradient),
        "RAdam of torch": steps_of_torch(torch.optim.RAdam, gradient),
        "RAdam of optax": steps_of_optax(gradient),
        "RAdam of pytorch_optimizer": steps_of_torch(pytorch_optimizer.RAdam, gradient),
    }.items():
        print(f"gradient {gradient:g} | {name} |", *(f"{steps[step - 1]:.5f}" for step in (1, 5, 6, 8)))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
gradient 1 | Adam of torch | 0.00100 0.00100 0.00100 0.00100
gradient 1 | RAdam of torch | 0.00100 0.00100 0.00003 0.00004
gradient 1 | RAdam of optax | 0.00100 0.00100 0.00003 0.00004
gradient 1 | RAdam of pytorch_optimizer | 0.00000 0.00000 0.00003 0.00004
gradient 1000 | Adam of torch | 0.00100 0.00100 0.00100 0.00100
gradient 1000 | RAdam of torch | 1.00000 1.00000 0.00003 0.00004
gradient 1000 | RAdam of optax | 1.00000 1.00000 0.00003 0.00004
gradient 1000 | RAdam of pytorch_optimizer | 0.00000 0.00000 0.00003 0.00004
SEEN
