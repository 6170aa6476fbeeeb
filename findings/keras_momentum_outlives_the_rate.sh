#!/usr/bin/env bash
# A learning rate of 0 does not stop Keras' SGD with momentum: the weights move on by more than they had moved before.
#
# Guess: the rate scales each update, so a drop takes effect at the next step, and at a rate of 0 nothing moves.
# Seen:  Keras' velocity holds rates of earlier steps. PyTorch and Optax scale the velocity as it is applied, and stop at
#        once. In Keras 20 steps pass until a drop to a tenth brings the updates to less than twice their new size. The
#        learning rate in a log is so not the size of the steps after each drop.
# With:  keras 3.12.0, torch 2.13.0, optax 0.2.8, jax 0.10.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q keras==3.12.0 torch==2.13.0 optax==0.2.8 jax==0.10.2 numpy==2.4.6 2>/dev/null
cd "$folder"
export KERAS_BACKEND=jax
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import jax.numpy as jnp
import keras
import optax
import torch


def of_keras(rates):
    weight, optimizer = keras.Variable([0.0]), keras.optimizers.SGD(1.0, momentum=0.9)
    optimizer.build([weight])
    for rate in rates:
        optimizer.learning_rate = rate
        optimizer.apply([jnp.ones(1)])
        yield float(weight[0])


def of_torch(rates):
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=1.0, momentum=0.9)
    for rate in rates:
        weight.grad, optimizer.param_groups[0]["lr"] = torch.ones(1), rate
        optimizer.step()
        yield float(weight)


def of_optax(rates):
    weight, optimizer = jnp.zeros(1), optax.sgd(lambda count: jnp.asarray(rates)[count], momentum=0.9)
    state = optimizer.init(weight)
    for _ in rates:
        update, state = optimizer.update(jnp.ones(1), state, weight)
        weight = weight + update
        yield float(weight[0])


for name, run in {"keras": of_keras, "torch": of_torch, "optax": of_optax}.items():
    stopped = list(run([0.1] * 10 + [0.0] * 50))
    print(name, "| after 10 steps", round(stopped[9], 2), "and 50 at a rate of 0", round(stopped[-1], 2), end=" ")
    dropped = list(run([1.0] * 100 + [0.1] * 50))
    steps = [before - after for before, after in zip(dropped[99:], dropped[100:])]
    late = next(number for number, step in enumerate(steps) if step < 2 * steps[-1])
    print("| steps until a drop to a tenth shows", late)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
keras | after 10 steps -4.14 and 50 at a rate of 0 -9.97 | steps until a drop to a tenth shows 20
torch | after 10 steps -4.14 and 50 at a rate of 0 -4.14 | steps until a drop to a tenth shows 0
optax | after 10 steps -4.14 and 50 at a rate of 0 -4.14 | steps until a drop to a tenth shows 0
SEEN
