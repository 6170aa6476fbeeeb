#!/usr/bin/env bash
# Adam of Optax on bf16 weights is NaN from its first step on, once `inject_hyperparams` shows its learning rate.
#
# Guess: `inject_hyperparams`, by which a loop logs or changes the rate, leaves the numbers of the optimizer as they
#        are: the losses stay the same.
# Seen:  all numbers of the optimizer get the precision of the first weights. In bf16 each number above 0.998 is 1.0, so
#        that the 0.999 of the second moment makes the first step divide 0 by 0: all weights are NaN. It looks like a
#        loss that exploded, and no lower rate helps. At 0.99, or with `hyperparam_dtype=jnp.float32`, the losses are
#        those of the plain optimizer.
# With:  optax 0.2.8, jax 0.10.2, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q optax==0.2.8 jax==0.10.2 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import jax
import jax.numpy as jnp
import optax


def loss(weights):
    """Return the mean square of the weights, in float32."""
    return (weights.astype(jnp.float32) ** 2).mean()


inject = optax.inject_hyperparams
for precision in ("float32", "bfloat16"):
    for second in (0.999, 0.99):
        for name, optimizer in {
            "plain": optax.adam(1e-3, b2=second),
            "injected": inject(optax.adam)(1e-3, b2=second),
            "injected in float32": inject(optax.adam, hyperparam_dtype=jnp.float32)(1e-3, b2=second),
        }.items():
            weights = jnp.full(4, 0.1, precision)
            state = optimizer.init(weights)
            losses = []
            for _ in range(20):
                value, gradient = jax.value_and_grad(loss)(weights)
                update, state = optimizer.update(gradient, state, weights)
                weights = optax.apply_updates(weights, update)
                losses.append(f"{float(value):.4f}")
            kept = f"kept as {float(state.hyperparams['b2']):.4f}" if name != "plain" else ""
            print(precision, second, name, "| losses", *losses[:2], "...", losses[-1], kept)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
float32 0.999 plain | losses 0.0100 0.0098 ... 0.0066 
float32 0.999 injected | losses 0.0100 0.0098 ... 0.0066 kept as 0.9990
float32 0.999 injected in float32 | losses 0.0100 0.0098 ... 0.0066 kept as 0.9990
float32 0.99 plain | losses 0.0100 0.0098 ... 0.0066 
float32 0.99 injected | losses 0.0100 0.0098 ... 0.0066 kept as 0.9900
float32 0.99 injected in float32 | losses 0.0100 0.0098 ... 0.0066 kept as 0.9900
bfloat16 0.999 plain | losses 0.0100 0.0098 ... 0.0066 
bfloat16 0.999 injected | losses 0.0100 nan ... nan kept as 1.0000
bfloat16 0.999 injected in float32 | losses 0.0100 0.0098 ... 0.0066 kept as 0.9990
bfloat16 0.99 plain | losses 0.0100 0.0098 ... 0.0066 
bfloat16 0.99 injected | losses 0.0100 0.0098 ... 0.0066 kept as 0.9883
bfloat16 0.99 injected in float32 | losses 0.0100 0.0098 ... 0.0066 kept as 0.9900
SEEN
