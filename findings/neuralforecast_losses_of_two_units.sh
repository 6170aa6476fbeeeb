#!/usr/bin/env bash
# NeuralForecast logs a validation loss a thousand times its training loss, for a model that is equally good on both.
#
# Guess: both are the mean absolute error in one unit, so that such a gap is overfitting.
# Seen:  with a `scaler_type` the training loss is of the scaled series, and the validation loss of the series itself:
#        the gap is the scale of the data. The same series in metres and in kilometres has one training loss and two
#        validation losses. Without a scaler both have the same unit.
# With:  neuralforecast 3.3.0, pytorch-lightning 2.6.6, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q neuralforecast==3.3.0 pytorch-lightning==2.6.6 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | grep "^scaler" | tee seen.txt
import math

import numpy
import pandas
from neuralforecast import NeuralForecast
from neuralforecast.losses.pytorch import MAE
from neuralforecast.models import MLP

quiet = {"enable_progress_bar": False, "logger": False, "enable_checkpointing": False, "accelerator": "cpu"}
draw, days = numpy.random.default_rng(0), numpy.arange(200)
series = numpy.sin(days / 2) + draw.normal(size=200) / 10
for scaler in ("standard", "robust", "identity"):
    for scale in (1, 1000):
        table = pandas.DataFrame({"unique_id": "a", "ds": days, "y": series * scale})
        steps = {"max_steps": 60, "val_check_steps": 60}
        model = MLP(h=4, input_size=12, scaler_type=scaler, loss=MAE(), random_seed=0, **steps, **quiet)
        forecast = NeuralForecast([model], freq=1)
        forecast.fit(table, val_size=40)
        train, valid = forecast.models[0].train_trajectories[-1][1], forecast.models[0].valid_trajectories[-1][1]
        gap = 10 ** round(math.log10(valid / train))
        print(f"scaler {scaler}, scale {scale} | validation loss about {gap} times the training loss")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
scaler standard, scale 1 | validation loss about 1 times the training loss
scaler standard, scale 1000 | validation loss about 1000 times the training loss
scaler robust, scale 1 | validation loss about 1 times the training loss
scaler robust, scale 1000 | validation loss about 1000 times the training loss
scaler identity, scale 1 | validation loss about 1 times the training loss
scaler identity, scale 1000 | validation loss about 1 times the training loss
SEEN
