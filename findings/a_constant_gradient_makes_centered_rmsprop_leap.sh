#!/usr/bin/env bash
# A constant gradient makes centered RMSprop leap by 500 rates a step and more, in PyTorch, Optax and Keras.
#
# Guess: `centered=True` makes steps a little larger than those of plain RMSprop, whose length is about the rate.
# Seen:  it divides by the standard deviation of the gradient, which goes to 0 as the gradient stays the same. An
#        absolute error has such a gradient for a bias that starts far from its targets. At a rate of 0.001 the steps of
#        plain RMSprop are 0.001 long, and 2,000 of them make 2. Centered ones grow to above 0.5, within 500 to 1,500
#        steps, and make hundreds. In PyTorch and Optax nothing but rounding bounds them. The loss looks calm before.
# With:  torch 2.13.0, optax 0.2.8, jax 0.10.2, keras 3.15.1, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 optax==0.2.8 jax==0.10.2 keras==3.15.1 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import os

os.environ["KERAS_BACKEND"] = "jax"
import jax
import keras
import optax
import torch


def of_torch(centered):
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.RMSprop([weight], lr=0.001, centered=centered)
    while True:
        optimizer.zero_grad()
        (weight - 1000).abs().mean().backward()
        optimizer.step()
        yield weight.item()


def of_optax(centered):
    weight = jax.numpy.zeros(1)
    optimizer = optax.rmsprop(0.001, decay=0.99, centered=centered)
    state = optimizer.init(weight)

    @jax.jit
    def step(weight, state):
        gradient = jax.grad(lambda weight: abs(weight - 1000).mean())(weight)
        change, state = optimizer.update(gradient, state)
        return weight + change, state

    while True:
        weight, state = step(weight, state)
        yield weight.item()


def of_keras(centered):
    weight = keras.Variable([0.0])
    optimizer = keras.optimizers.RMSprop(0.001, rho=0.9, centered=centered)
    while True:
        optimizer.apply([jax.grad(lambda value: abs(value - 1000).mean())(weight.value)], [weight])
        yield weight.value.item()


for name, values in (("torch", of_torch), ("optax", of_optax), ("keras", of_keras)):
    for centered in (False, True):
        way = [value for _, value in zip(range(2000), values(centered))]
        steps = [after - before for before, after in zip([0.0, *way], way)]
        lengths = " ".join(f"{steps[number - 1]:.3f}" for number in (10, 100))
        print(f"{name}, centered {centered} | length of steps 10 and 100: {lengths}", end=" | ")
        print(f"longest above 0.5: {max(steps) > 0.5} | beyond 100 after 2000 steps: {way[-1] > 100}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
torch, centered False | length of steps 10 and 100: 0.003 0.001 | longest above 0.5: False | beyond 100 after 2000 steps: False
torch, centered True | length of steps 10 and 100: 0.003 0.002 | longest above 0.5: True | beyond 100 after 2000 steps: True
optax, centered False | length of steps 10 and 100: 0.003 0.001 | longest above 0.5: False | beyond 100 after 2000 steps: False
optax, centered True | length of steps 10 and 100: 0.003 0.002 | longest above 0.5: True | beyond 100 after 2000 steps: True
keras, centered False | length of steps 10 and 100: 0.001 0.001 | longest above 0.5: False | beyond 100 after 2000 steps: False
keras, centered True | length of steps 10 and 100: 0.002 0.194 | longest above 0.5: True | beyond 100 after 2000 steps: True
SEEN
