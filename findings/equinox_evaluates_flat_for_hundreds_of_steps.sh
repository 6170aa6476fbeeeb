#!/usr/bin/env bash
# Equinox' BatchNorm gives outputs of a width of 0.02 in evaluation, and of 1.00 in training, after ten steps.
#
# Guess: `mode="batch"` keeps averages that are corrected for their start, as Adam does: evaluation is right from the
#        first step on, while that of Keras, which corrects nothing, is off for as long as its momentum looks back.
# Seen:  the running variance begins at 1, not at 0, and is divided by the same correction all the same. After one step
#        it is 99 too high, after ten 9.5, after 100 still 0.6, whatever the batches had. So Equinox is worse off than
#        Keras. Where batches vary little, validation sees a constant for hundreds of steps, while the training loss
#        falls. `mode="ema"` is right at once.
# With:  equinox 0.13.8, keras 3.15.1, jax 0.10.2, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q equinox==0.13.8 keras==3.15.1 jax==0.10.2 numpy==2.4.6 2>/dev/null
cd "$folder"
KERAS_BACKEND=jax env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import equinox
import jax
import keras
import numpy

batch = numpy.random.default_rng(0).normal(0, 0.05, (256, 3)).astype("float32")
after = (1, 10, 100, 300, 1000)


def called(layer):
    """Return the layer as a function of a batch and its state."""
    return jax.jit(jax.vmap(layer, axis_name="batch", in_axes=(0, None), out_axes=(0, None)))


for mode in ("batch", "ema"):
    layer, state = equinox.nn.make_with_state(equinox.nn.BatchNorm)(3, axis_name="batch", mode=mode, eps=1e-9)
    train, evaluate, widths = called(layer), called(equinox.nn.inference_mode(layer)), []
    for step in range(1, 1001):
        outputs, state = train(batch, state)
        if step in after:
            widths.append(evaluate(batch, state)[0].std())
    print(f"Equinox {mode} | training {outputs.std():.2f} | evaluation after", *after, "steps |", end="")
    print(*(f" {width:.2f}" for width in widths), sep="")
layer, widths = keras.layers.BatchNormalization(epsilon=1e-9), []
for step in range(1, 1001):
    outputs = layer(batch, training=True)
    if step in after:
        widths.append(numpy.std(layer(batch, training=False)))
print(f"Keras | training {numpy.std(outputs):.2f} | evaluation after", *after, "steps |", end="")
print(*(f" {width:.2f}" for width in widths), sep="")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
Equinox batch | training 1.00 | evaluation after 1 10 100 300 1000 steps | 0.01 0.02 0.07 0.21 0.99
Equinox ema | training 1.00 | evaluation after 1 10 100 300 1000 steps | 1.00 1.00 1.00 1.00 1.00
Keras | training 1.00 | evaluation after 1 10 100 300 1000 steps | 0.05 0.05 0.08 0.22 0.99
SEEN
