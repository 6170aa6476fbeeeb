#!/usr/bin/env bash
# One model has an accuracy of 0.5 or 1.0 in Keras by the size of a batch, if `set_floatx` is "bfloat16".
#
# Guess: weights of bfloat16 make a loss and an accuracy coarse, to two digits; the size of a batch changes neither.
# Seen:  the means of an epoch are counted in the same type. The count of rows stops where a batch is half of a step of
#        bfloat16, at 2,048 for batches of 8, and the sum of losses at a number of its own. A model that never learns,
#        with a loss of 0.81 and an accuracy of 0.5, has 2.0 and 1.0 in batches of 8. With
#        `set_dtype_policy("bfloat16")` the means stay in float32, and are right.
# With:  keras 3.15.1 on torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q keras==3.15.1 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import os

os.environ["KERAS_BACKEND"] = "torch"
os.environ["KERAS_HOME"] = os.getcwd()
import keras
import numpy

rows = numpy.random.default_rng(0).standard_normal((16384, 4)).astype("float32")
labels = (rows[:, :1] > 0).astype("float32")
for name, choose, kind in (
    ("float32", keras.config.set_floatx, "float32"),
    ("policy bfloat16", keras.config.set_dtype_policy, "bfloat16"),
    ("floatx bfloat16", keras.config.set_floatx, "bfloat16"),
):
    keras.config.set_dtype_policy("float32")
    choose(kind)
    layer = keras.layers.Dense(1, "sigmoid", kernel_initializer="zeros", bias_initializer="ones")
    model = keras.Sequential([keras.Input((4,)), layer])
    model.compile(keras.optimizers.SGD(0.0), "binary_crossentropy", metrics=["accuracy"])
    for size in (8, 64, 1024):
        loss, accuracy = model.evaluate(rows, labels, batch_size=size, verbose=0)
        print(f"{name} | batches of {size} | loss {loss:.2f} accuracy {accuracy:.2f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
float32 | batches of 8 | loss 0.81 accuracy 0.50
float32 | batches of 64 | loss 0.81 accuracy 0.50
float32 | batches of 1024 | loss 0.81 accuracy 0.50
policy bfloat16 | batches of 8 | loss 0.81 accuracy 0.50
policy bfloat16 | batches of 64 | loss 0.81 accuracy 0.50
policy bfloat16 | batches of 1024 | loss 0.81 accuracy 0.50
floatx bfloat16 | batches of 8 | loss 2.00 accuracy 1.00
floatx bfloat16 | batches of 64 | loss 0.91 accuracy 0.50
floatx bfloat16 | batches of 1024 | loss 0.81 accuracy 0.50
SEEN
