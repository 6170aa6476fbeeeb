#!/usr/bin/env bash
# A model that ranks each rare case above all others has an AUC of 0.5 in Keras, river and a binned torchmetrics.
#
# Guess: the AUC asks for the order alone: a perfect ranking has AUC 1, and a grid of 200 thresholds errs by a little.
# Seen:  the grid is even from 0 to 1, whatever the scores are. A calibrated model of a class with 1 row in 100,000 never
#        leaves its first step: AUC 0.5, and the area of precision and recall is the rate of the class. Scores times
#        100 have AUC 1. river has ten thresholds, so scores below 0.11 are enough there.
# With:  keras 3.12.0, jax 0.10.2, river 0.26.1, torchmetrics 1.9.0, scikit-learn 1.9.1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q keras==3.12.0 jax==0.10.2 river==0.26.1 torchmetrics==1.9.0 scikit-learn==1.9.1 \
    torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
export KERAS_BACKEND=jax
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import keras
import numpy
import river.metrics
import sklearn.metrics
import torch
from torchmetrics.functional.classification import binary_auroc

labels = numpy.array([0] * 990 + [1] * 10)
spread = numpy.random.default_rng(0).uniform(0, 0.0005, 1000)


def of_keras(scores, curve="ROC"):
    metric = keras.metrics.AUC(curve=curve)
    metric.update_state(labels, scores)
    return float(metric.result())


def of_river(scores):
    metric = river.metrics.ROCAUC()
    for label, score in zip(labels, scores):
        metric.update(bool(label), float(score))
    return metric.get()


for name, scores in {
    "all below 0.005": numpy.where(labels == 1, 0.004, 0.002) + spread,
    "all below 0.1": numpy.where(labels == 1, 0.09, 0.05) + spread,
    "times 100": 100 * (numpy.where(labels == 1, 0.004, 0.002) + spread),
}.items():
    tensors = torch.tensor(scores), torch.tensor(labels)
    found = {
        "scikit-learn": sklearn.metrics.roc_auc_score(labels, scores),
        "torchmetrics": binary_auroc(*tensors),
        "torchmetrics at 200": binary_auroc(*tensors, thresholds=200),
        "keras": of_keras(scores),
        "keras PR": of_keras(scores, "PR"),
        "river": of_river(scores),
    }
    print(name, {library: round(float(value), 3) for library, value in found.items()})
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
all below 0.005 {'scikit-learn': 1.0, 'torchmetrics': 1.0, 'torchmetrics at 200': 0.5, 'keras': 0.5, 'keras PR': 0.01, 'river': 0.5}
all below 0.1 {'scikit-learn': 1.0, 'torchmetrics': 1.0, 'torchmetrics at 200': 1.0, 'keras': 1.0, 'keras PR': 1.0, 'river': 0.5}
times 100 {'scikit-learn': 1.0, 'torchmetrics': 1.0, 'torchmetrics at 200': 1.0, 'keras': 1.0, 'keras PR': 1.0, 'river': 1.0}
SEEN
