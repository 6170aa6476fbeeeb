#!/usr/bin/env bash
# Keras' `F1Score` of a binary classifier is 0.45 for the best model, the worst and chance: it looks at no output.
#
# Guess: `metrics=[keras.metrics.F1Score()]` with one sigmoid output rounds at 0.5, as "accuracy" and `Precision` do.
# Seen:  without a threshold the largest output of each row counts as 1, and the one output of a row is its largest. So
#        each row is positive, and the score follows from the share of positive rows p alone: 2p/(1+p). It is flat over
#        the epochs while the loss falls. `FBetaScore` does the same. With `threshold=0.5` the scores are as one
#        expects.
# With:  keras 3.15.1, jax 0.10.2, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q keras==3.15.1 jax==0.10.2 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import os

os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy
from keras import metrics

rng = numpy.random.default_rng(0)
features = rng.normal(size=(400, 2)).astype("float32")
labels = (features.sum(1, keepdims=True) > 0.75).astype("float32")
print(f"share of positive rows {labels.mean():.2f}")


def score(metric, outputs):
    metric.update_state(labels, outputs)
    return f"{float(metric.result().squeeze()):.3f}"


for title, outputs in {
    "always right": labels * 0.8 + 0.1,
    "always wrong": 0.9 - labels * 0.8,
    "chance": rng.random((400, 1)).astype("float32"),
    "always 0.01": numpy.full((400, 1), 0.01, "float32"),
}.items():
    makers = (metrics.F1Score, metrics.FBetaScore, metrics.Precision, metrics.Recall)
    scores = [score(make(), outputs) for make in makers]
    print(title, "| F1Score, FBetaScore", *scores[:2], "| Precision, Recall", *scores[2:], end=" | ")
    print("F1Score(threshold=0.5)", score(metrics.F1Score(threshold=0.5), outputs))

keras.utils.set_random_seed(0)
model = keras.Sequential([keras.layers.Dense(1, "sigmoid")])
model.compile(keras.optimizers.Adam(0.1), "binary_crossentropy", metrics=[metrics.F1Score(), "accuracy"])
history = model.fit(features, labels, epochs=10, verbose=0).history
for name in ("f1_score", "accuracy"):
    print(name, "of epochs 1 and 10", *(f"{float(numpy.squeeze(history[name][epoch])):.2f}" for epoch in (0, 9)))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
share of positive rows 0.29
always right | F1Score, FBetaScore 0.450 0.450 | Precision, Recall 1.000 1.000 | F1Score(threshold=0.5) 1.000
always wrong | F1Score, FBetaScore 0.450 0.450 | Precision, Recall 0.000 0.000 | F1Score(threshold=0.5) 0.000
chance | F1Score, FBetaScore 0.450 0.450 | Precision, Recall 0.275 0.491 | F1Score(threshold=0.5) 0.353
always 0.01 | F1Score, FBetaScore 0.450 0.450 | Precision, Recall 0.000 0.000 | F1Score(threshold=0.5) 0.000
f1_score of epochs 1 and 10 0.45 0.45
accuracy of epochs 1 and 10 0.93 1.00
SEEN
