#!/usr/bin/env bash
# The LogCosh error of torchmetrics is infinite for a forecast that is off by 89, and with it that of the whole epoch.
#
# Guess: log-cosh is taken because large errors count as their absolute value less ln 2: 88.3 for an error of 89.
# Seen:  `LogCoshError` computes the cosh itself, which float32 holds up to errors of 88 or so. Keras and Optax rewrite
#        it and give 88.3, and 999,999 for an error of a million. The metric is a sum over the epoch: one row of 1,000
#        that is off by 89 makes it infinite, for a model that is off by 0.1 elsewhere.
# With:  torchmetrics 1.9.0, keras 3.15.1, optax 0.2.8, jax 0.10.2, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
packages="torchmetrics==1.9.0 keras==3.15.1 optax==0.2.8 jax==0.10.2 torch==2.13.0 numpy==2.4.6"
"$folder/env/bin/pip" install -q $packages 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import os

os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy
import optax
import torch
from torchmetrics.regression import LogCoshError


def by_torchmetrics(errors):
    metric = LogCoshError()
    for part in numpy.array_split(errors, 10):
        metric.update(torch.from_numpy(part), torch.zeros(len(part)))
    return metric.compute().item()


one_of_many = numpy.full(1000, 0.1, numpy.float32)
one_of_many[500] = 89
for title, errors in {
    "off by 1": numpy.float32([1] * 10),
    "off by 88": numpy.float32([88] * 10),
    "off by 89": numpy.float32([89] * 10),
    "off by 1,000,000": numpy.float32([1e6] * 10),
    "999 rows off by 0.1, one by 89": one_of_many,
}.items():
    zeros = numpy.zeros_like(errors)
    print(
        f"{title} | torchmetrics {by_torchmetrics(errors):.3f}",
        f"| keras {float(keras.losses.LogCosh()(zeros, errors)):.3f}",
        f"| optax {float(optax.log_cosh(errors, zeros).mean()):.3f}",
    )
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
off by 1 | torchmetrics 0.434 | keras 0.434 | optax 0.434
off by 88 | torchmetrics 87.307 | keras 87.307 | optax 87.307
off by 89 | torchmetrics inf | keras 88.307 | optax 88.307
off by 1,000,000 | torchmetrics inf | keras 999999.312 | optax 999999.312
999 rows off by 0.1, one by 89 | torchmetrics inf | keras 0.093 | optax 0.093
SEEN
