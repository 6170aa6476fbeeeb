#!/usr/bin/env bash
# The last val_loss of a Keras run with `use_ema` is 18.3, and the model that `fit` returns has 45.2 on the same rows.
#
# Guess: validation is of the averaged weights in each epoch, or of the raw ones, which the model then keeps.
# Seen:  each val_loss, and so what ModelCheckpoint and EarlyStopping see, is of the raw weights. As `fit` ends, the
#        average overwrites them; in short runs it is mostly the initial weights. A second `fit` goes on from there, so
#        its loss jumps up. With `ema_overwrite_frequency=8` the average overwrites them each 8 steps: it hardly learns.
# With:  keras 3.12.0 on torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q keras==3.12.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
export KERAS_BACKEND=torch
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import keras
import numpy

rows = numpy.random.default_rng(0).normal(size=(64, 4)).astype("float32")
targets = rows @ numpy.array([[1], [2], [3], [4]], "float32")
for options in ({}, {"use_ema": True}, {"use_ema": True, "ema_overwrite_frequency": 8}):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.05, **options), "mse")
    print(options)
    for _ in range(2):
        log = model.fit(rows, targets, 8, 5, 0, validation_data=(rows, targets)).history["val_loss"]
        last = model.evaluate(rows, targets, verbose=0)
        print("  val_loss", *(f"{loss:.1f}" for loss in log), f"| of the model {last:.1f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
{}
  val_loss 44.4 36.2 29.3 23.4 18.3 | of the model 18.3
  val_loss 14.4 11.0 8.4 6.3 4.7 | of the model 4.7
{'use_ema': True}
  val_loss 44.4 36.2 29.3 23.4 18.3 | of the model 45.2
  val_loss 37.6 29.8 23.6 18.3 14.3 | of the model 38.0
{'use_ema': True, 'ema_overwrite_frequency': 8}
  val_loss 52.6 52.2 51.8 51.4 51.0 | of the model 51.0
  val_loss 50.6 50.1 49.7 49.3 48.9 | of the model 48.9
SEEN
