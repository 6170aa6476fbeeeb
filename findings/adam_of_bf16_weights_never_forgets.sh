#!/usr/bin/env bash
# Adam on bf16 weights never forgets a large gradient: ten bad batches slow a weight down for the rest of the run.
#
# Guess: the second moment forgets a spike with a half-life of 700 steps, in each precision; bf16 only makes it
#        coarser.
# Seen:  0.999 times a bf16 number rounds back to that number, so the second moment can rise and never fall. After ten
#        gradients of 100 among gradients of 0.01 float32 is back at the full rate; bf16 stands at a thousandth of it
#        for good. The learning rate in the log is as usual and the loss just stands still. With a `beta2` of 0.99 it
#        forgets.
# With:  torch 2.13.0, optax 0.2.8, jax 0.10.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 optax==0.2.8 jax==0.10.2 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import jax
import jax.numpy as jnp
import optax
import torch

STEPS = 20000


def gradient_of(step: int) -> float:
    """Return a gradient of 100 in ten steps, and of 0.01 in all others."""
    return 100.0 if step < 10 else 0.01


def moments_in_torch(precision: torch.dtype) -> list[float]:
    weight = torch.nn.Parameter(torch.zeros(1, dtype=precision))
    optimizer, moments = torch.optim.Adam([weight], lr=1e-3, foreach=False), []
    for step in range(STEPS):
        weight.grad = torch.full((1,), gradient_of(step), dtype=precision)
        optimizer.step()
        moments.append(optimizer.state[weight]["exp_avg_sq"].item())
    return moments


def moments_in_optax(precision: jnp.dtype, beta: float) -> list[float]:
    optimizer = optax.scale_by_adam(b2=beta)

    def move(state, gradient):
        _, state = optimizer.update(gradient, state)
        return state, state.nu

    gradients = jnp.asarray([gradient_of(step) for step in range(STEPS)], precision)
    return jax.lax.scan(move, optimizer.init(jnp.zeros((), precision)), gradients)[1].astype(float).tolist()


for name, moments in {
    "torch 0.999 float32": moments_in_torch(torch.float32),
    "torch 0.999 bf16": moments_in_torch(torch.bfloat16),
    "optax 0.999 float32": moments_in_optax(jnp.float32, 0.999),
    "optax 0.999 bf16": moments_in_optax(jnp.bfloat16, 0.999),
    "optax 0.99 float32": moments_in_optax(jnp.float32, 0.99),
    "optax 0.99 bf16": moments_in_optax(jnp.bfloat16, 0.99),
}.items():
    after = (f"{0.01 / moments[step - 1] ** 0.5:.1g} after {step}" for step in (10, 1000, STEPS))
    print(name, "| part of the rate", *after)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
torch 0.999 float32 | part of the rate 0.001 after 10 0.002 after 1000 1 after 20000
torch 0.999 bf16 | part of the rate 0.001 after 10 0.001 after 1000 0.001 after 20000
optax 0.999 float32 | part of the rate 0.001 after 10 0.002 after 1000 1 after 20000
optax 0.999 bf16 | part of the rate 0.001 after 10 0.001 after 1000 0.001 after 20000
optax 0.99 float32 | part of the rate 0.0003 after 10 0.05 after 1000 1 after 20000
optax 0.99 bf16 | part of the rate 0.0003 after 10 0.1 after 1000 0.9 after 20000
SEEN
