#!/usr/bin/env bash
# One metric that is NaN from the first round leaves a LightGBM model of one tree, though the loss falls.
#
# Guess: early stopping passes over a metric that is NaN, or goes by the loss, which improves in every round.
# Seen:  LightGBM stops after the patience with best_iteration 1 and keeps one tree; XGBoost, which goes by the last
#        metric, stops as well, calls round 0 the best and keeps all 11 rounds.
# With:  lightgbm 4.7.0, xgboost-cpu 3.2.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q lightgbm==4.7.0 xgboost-cpu==3.2.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - <<'PYTHON' | tee seen.txt
import lightgbm
import numpy
import xgboost

draw = numpy.random.default_rng(0)
rows = draw.normal(size=(400, 5))
labels = (rows[:, 0] > 0).astype(int)
train, valid = (rows[:300], labels[:300]), (rows[300:], labels[300:])

data = lightgbm.Dataset(*train)
history = {}
model = lightgbm.train(
    {"objective": "binary", "metric": "binary_logloss", "verbose": -1},
    data,
    num_boost_round=60,
    valid_sets=[lightgbm.Dataset(*valid, reference=data)],
    feval=lambda predicted, _: ("score", float("nan"), True),
    callbacks=[lightgbm.early_stopping(10, verbose=False), lightgbm.record_evaluation(history)],
)
losses = history["valid_0"]["binary_logloss"]
print("lightgbm rounds", len(losses), "loss falls in each", all(a > b for a, b in zip(losses, losses[1:])))
print("lightgbm best", model.best_iteration, "trees kept", model.num_trees())

history = {}
model = xgboost.train(
    {"objective": "binary:logistic", "eval_metric": "logloss"},
    xgboost.DMatrix(*train),
    60,
    evals=[(xgboost.DMatrix(*valid), "valid")],
    custom_metric=lambda predicted, _: ("score", float("nan")),
    early_stopping_rounds=10,
    verbose_eval=False,
    evals_result=history,
)
losses = history["valid"]["logloss"]
print("xgboost rounds", len(losses), "loss falls in each", all(a > b for a, b in zip(losses, losses[1:])))
print("xgboost best", model.best_iteration, "rounds kept", model.num_boosted_rounds())
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
lightgbm rounds 11 loss falls in each True
lightgbm best 1 trees kept 1
xgboost rounds 11 loss falls in each True
xgboost best 0 rounds kept 11
SEEN
