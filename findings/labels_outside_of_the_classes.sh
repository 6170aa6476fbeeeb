#!/usr/bin/env bash
# A label of -1 is the last class for Optax, and no label at all for Keras on JAX: neither raises.
#
# Guess: a label that is not a class raises, as in LightGBM; or its loss is NaN and so is its gradient.
# Seen:  Optax counts -1 from the end, as Python does: rows that were marked as unlabelled pull towards the last class.
#        For -100, and for 3 of three classes, its loss is NaN but the gradient is finite: it pushes all classes down.
#        Keras gives a loss of 0 and no gradient for each of them, so that a class that was forgotten lowers the loss.
# With:  optax 0.2.8, keras 3.12.0, jax 0.10.2, lightgbm 4.7.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q optax==0.2.8 keras==3.12.0 jax==0.10.2 lightgbm==4.7.0 numpy==2.4.6 2>/dev/null
cd "$folder"
export KERAS_BACKEND=jax
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import jax
import jax.numpy as jnp
import keras
import lightgbm
import numpy
import optax


def of_optax(logits, label):
    return optax.softmax_cross_entropy_with_integer_labels(logits, jnp.asarray([label])).mean()


def of_keras(logits, label):
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)(jnp.asarray([label]), logits)


def of_lightgbm(label):
    rows = lightgbm.Dataset(numpy.zeros((4, 1)), [0, 1, 2, label])
    try:
        lightgbm.train({"objective": "multiclass", "num_class": 3, "verbose": -1}, rows, 1)
    except lightgbm.basic.LightGBMError as error:
        return f"raises {error}"
    return "trains"


logits = jnp.asarray([[2.0, 1.0, 0.0]])
for label in (2, -1, -100, 3):
    found = {}
    for name, loss in {"optax": of_optax, "keras": of_keras}.items():
        value, gradient = jax.value_and_grad(loss)(logits, label)
        found[name] = round(float(value), 3) + 0.0, [round(float(number), 2) + 0.0 for number in gradient[0]]
    print(label, found, "| lightgbm", of_lightgbm(label))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
2 {'optax': (2.408, [0.67, 0.24, -0.91]), 'keras': (2.408, [0.67, 0.24, -0.91])} | lightgbm trains
-1 {'optax': (2.408, [0.67, 0.24, -0.91]), 'keras': (0.0, [0.0, 0.0, 0.0])} | lightgbm raises Label must be in [0, 3), but found -1 in label
-100 {'optax': (nan, [0.67, 0.24, 0.09]), 'keras': (0.0, [0.0, 0.0, 0.0])} | lightgbm raises Label must be in [0, 3), but found -100 in label
3 {'optax': (nan, [0.67, 0.24, 0.09]), 'keras': (0.0, [0.0, 0.0, 0.0])} | lightgbm raises Label must be in [0, 3), but found 3 in label
SEEN
