#!/usr/bin/env bash
# Optax' Adafactor takes its weight decay from each weight whole: 0.1 halves the weights every seven steps.
#
# Guess: as in AdamW, the decay is multiplied by the learning rate: at 1e-3 and 0.1 a ten thousandth per step.
# Seen:  `weight_decay_rate` is applied after the rate. Weights without a gradient are at 0.35 after ten steps, where
#        AdamW, Lion and PyTorch's Adafactor leave 0.999. At a rate of 0, in a warm-up or after the end of a schedule,
#        they shrink as fast. The loss looks like a rate that is too high.
# With:  optax 0.2.8, jax 0.10.2, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
packages="optax==0.2.8 jax==0.10.2 torch==2.13.0 numpy==2.4.6"
"$folder/env/bin/pip" install -q $packages 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import jax.numpy as jnp
import optax
import torch


def left_by_optax(optimizer: optax.GradientTransformation) -> float:
    """Return a weight of 1 after ten steps without a gradient."""
    weight = jnp.ones(())
    state = optimizer.init(weight)
    for _ in range(10):
        update, state = optimizer.update(jnp.zeros(()), state, weight)
        weight = optax.apply_updates(weight, update)
    return float(weight)


def left_by_torch(rate: float) -> float:
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.Adafactor([weight], lr=rate, weight_decay=0.1)
    for _ in range(10):
        weight.grad = torch.zeros(1)
        optimizer.step()
    return weight.item()


for rate in (1e-3, 0.0):
    print(
        f"rate {rate:g}",
        f"| AdamW of optax {left_by_optax(optax.adamw(rate, weight_decay=0.1)):.3f}",
        f"| Lion of optax {left_by_optax(optax.lion(rate, weight_decay=0.1)):.3f}",
        f"| Adafactor of torch {left_by_torch(rate):.3f}",
        f"| Adafactor of optax {left_by_optax(optax.adafactor(rate, weight_decay_rate=0.1)):.3f}",
    )
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
rate 0.001 | AdamW of optax 0.999 | Lion of optax 0.999 | Adafactor of torch 0.999 | Adafactor of optax 0.349
rate 0 | AdamW of optax 1.000 | Lion of optax 1.000 | Adafactor of torch 1.000 | Adafactor of optax 0.349
SEEN
