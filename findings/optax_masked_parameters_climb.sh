#!/usr/bin/env bash
# Weights that `optax.masked` leaves out are not frozen: they climb up their gradient at a rate of 1.
#
# Guess: what the mask leaves out gets no update, so a model is frozen by masking its optimizer.
# Seen:  the gradient of such a weight passes unchanged, and `apply_updates` adds it: ascent, ten times as fast as the
#        descent of the rest. The loss explodes and looks like a rate that is too high. Gradients that are set to zero
#        in front of AdamW freeze nothing either: its decay still pulls. `partition` with `set_to_zero` does.
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

start = {"frozen": jnp.ones(1), "free": jnp.ones(1)}
free, frozen = {"frozen": False, "free": True}, {"frozen": True, "free": False}
zero = optax.set_to_zero()


def loss(weights):
    """Return the sum of squares, that is least at zero."""
    return sum((weight**2).sum() for weight in weights.values())


for name, optimizer in {
    "masked SGD": optax.masked(optax.sgd(0.1), free),
    "zero, then AdamW": optax.chain(optax.masked(zero, frozen), optax.adamw(0.1, weight_decay=0.1)),
    "partition": optax.partition({True: optax.sgd(0.1), False: zero}, free),
}.items():
    weights, state, losses = start, optimizer.init(start), []
    for _ in range(6):
        value, gradient = jax.value_and_grad(loss)(weights)
        update, state = optimizer.update(gradient, state, weights)
        weights = optax.apply_updates(weights, update)
        losses.append(round(float(value), 2))
    print(name, "| frozen weight", round(float(weights["frozen"][0]), 2), "| losses", *losses)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
masked SGD | frozen weight 729.0 | losses 2.0 9.64 81.41 729.26 6561.17 59049.11
zero, then AdamW | frozen weight 0.94 | losses 2.0 1.77 1.57 1.4 1.25 1.13
partition | frozen weight 1.0 | losses 2.0 1.64 1.41 1.26 1.17 1.11
SEEN
