#!/usr/bin/env bash
# A model with an R2 of 0.75 has 0.02, or -2.91, in torchmetrics, Keras and Ignite, if its targets are far from zero.
#
# Guess: R2 does not change if a constant is added to targets and predictions, and libraries agree.
# Seen:  the three keep sums of squares in float32 and take their difference at the end. With targets of 256, and a
#        spread of 1, the variance of 8,000 rows is a quarter of what it was; the error of the model is right, so that
#        R2 falls. Air pressure, coordinates, prices and energies are such targets. Few rows
#        show nothing: the score falls as the validation set grows. The same targets with their mean taken off are
#        right; scikit-learn is right in both.
# With:  torchmetrics 1.9.0, keras 3.15.1, pytorch-ignite 0.5.5, scikit-learn 1.9.1, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torchmetrics==1.9.0 keras==3.15.1 pytorch-ignite==0.5.5 scikit-learn==1.9.1 \
    torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import os

os.environ["KERAS_BACKEND"] = "torch"
import ignite.metrics.regression
import keras
import sklearn.metrics
import torch
from torchmetrics.regression import ExplainedVariance, R2Score

for level, count in ((0, 8000), (64, 8000), (256, 800), (256, 8000), (1024, 8000)):
    labels = level + torch.tensor([1.0, -1.0]).repeat(count // 2)
    guesses = (labels + level) / 2
    fed = {"torchmetrics": R2Score(), "its explained variance": ExplainedVariance()}
    fed["Ignite"], other = ignite.metrics.regression.R2Score(), keras.metrics.R2Score()
    for guess, label in zip(guesses.split(8), labels.split(8), strict=True):
        for name, metric in fed.items():
            metric.update((guess, label)) if name == "Ignite" else metric.update(guess, label)
        other.update_state(label[:, None], guess[:, None])
    scores = {name: metric.compute() for name, metric in fed.items()} | {"Keras": other.result()}
    scores["scikit-learn"] = sklearn.metrics.r2_score(labels.numpy(), guesses.numpy())
    print(f"targets {level} +- 1, {count} rows |", {name: round(float(score), 2) for name, score in scores.items()})
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
targets 0 +- 1, 8000 rows | {'torchmetrics': 0.75, 'its explained variance': 0.75, 'Ignite': 0.75, 'Keras': 0.75, 'scikit-learn': 0.75}
targets 64 +- 1, 8000 rows | {'torchmetrics': 0.75, 'its explained variance': 0.75, 'Ignite': 0.75, 'Keras': 0.75, 'scikit-learn': 0.75}
targets 256 +- 1, 800 rows | {'torchmetrics': 0.75, 'its explained variance': 0.75, 'Ignite': 0.75, 'Keras': 0.75, 'scikit-learn': 0.75}
targets 256 +- 1, 8000 rows | {'torchmetrics': 0.02, 'its explained variance': 0.03, 'Ignite': 0.02, 'Keras': 0.02, 'scikit-learn': 0.75}
targets 1024 +- 1, 8000 rows | {'torchmetrics': -2.91, 'its explained variance': -1.0, 'Ignite': -2.91, 'Keras': -2.91, 'scikit-learn': 0.75}
SEEN
