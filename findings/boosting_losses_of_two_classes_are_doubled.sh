#!/usr/bin/env bash
# Gradient boosting of two classes begins near a loss of 1.386, that of four even classes, in scikit-learn and YDF.
#
# Guess: the training loss of a classifier is the log loss: two even classes begin near ln 2 = 0.693, three near 1.099.
# Seen:  `GradientBoostingClassifier` and YDF log twice the log loss of two classes, but the plain one of three, so that
#        the harder task has the lower loss. `HistGradientBoosting` logs the log loss of both, with a minus, and half of
#        the mean squared error, where `GradientBoosting` logs the whole and YDF its root. A binary run seems to know
#        less than chance, and libraries with equal models seem to differ by a factor of 2.
# With:  scikit-learn 1.9.1, ydf 0.16.1, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q scikit-learn==1.9.1 ydf==0.16.1 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import numpy
import ydf
from sklearn import ensemble
from sklearn.metrics import log_loss, mean_squared_error

draw = numpy.random.default_rng(0)
values = draw.normal(size=900)
numbers = values + draw.normal(size=900)
ranks = numbers.argsort().argsort()
for classes in (2, 3, 0):
    target = ranks * classes // 900 if classes else numbers
    kind = "Classifier" if classes else "Regressor"
    rows = {"value": values, "target": target}
    table = values[:, None]
    found = {}
    scored = {"early_stopping": True, "scoring": "loss", "validation_fraction": None}
    for name, options in {
        "GradientBoosting": {"n_estimators": 20},
        "HistGradientBoosting": {"max_iter": 20, **scored},
    }.items():
        model = getattr(ensemble, name + kind)(**options).fit(table, target)
        found[name] = *model.train_score_[[0, -1]], (model.predict_proba if classes else model.predict)(table)
    task = ydf.Task.CLASSIFICATION if classes else ydf.Task.REGRESSION
    learner = ydf.GradientBoostedTreesLearner(label="target", task=task, num_trees=20, validation_ratio=0.0)
    model = learner.train(rows, verbose=0)
    first, last = (model.training_logs()[place].training_evaluation.loss for place in (0, -1))
    found["YDF"] = first, last, model.predict(rows)
    print(classes or "no", "classes: first and last loss, and that of the model")
    for name, (first, last, predicted) in found.items():
        measured = (log_loss if classes else mean_squared_error)(target, predicted)
        print(f"  {name} {first:.2f} {last:.2f} | {'log loss' if classes else 'mean square'} {measured:.2f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
2 classes: first and last loss, and that of the model
  GradientBoosting 1.32 0.98 | log loss 0.49
  HistGradientBoosting -0.69 -0.48 | log loss 0.48
  YDF 1.31 0.91 | log loss 0.45
3 classes: first and last loss, and that of the model
  GradientBoosting 1.05 0.81 | log loss 0.81
  HistGradientBoosting -1.10 -0.76 | log loss 0.76
  YDF 1.02 0.71 | log loss 0.71
no classes: first and last loss, and that of the model
  GradientBoosting 1.80 0.97 | mean square 0.97
  HistGradientBoosting -0.99 -0.47 | mean square 0.93
  YDF 1.34 0.92 | mean square 0.85
SEEN
