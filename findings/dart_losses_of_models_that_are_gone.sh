#!/usr/bin/env bash
# The loss that a booster of kind DART logs for a round is of a model that nobody can ask any more.
#
# Guess: the loss logged at round 10 is that of the first ten trees: `predict` up to the best round gives its loss.
# Seen:  later rounds rescale the trees that they drop. Cut to ten trees, the finished model has another loss than was
#        logged, in LightGBM and in XGBoost; at the last round the two agree. So no model has the best loss of the log.
# With:  lightgbm 4.7.0, xgboost-cpu 3.2.0, scikit-learn 1.9.1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q lightgbm==4.7.0 xgboost-cpu==3.2.0 scikit-learn==1.9.1 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import lightgbm
import numpy
import xgboost
from sklearn.metrics import log_loss

draw = numpy.random.default_rng(0)
rows = draw.normal(size=(400, 5))
labels = (rows[:, 0] + draw.normal(size=400) > 0).astype(int)
train, (valid, wanted) = (rows[:300], labels[:300]), (rows[300:], labels[300:])
for kind in ("gbdt", "dart"):
    data, history = lightgbm.Dataset(*train), {}
    options = {"objective": "binary", "metric": "binary_logloss", "verbose": -1, "boosting": kind, "seed": 1}
    held_out = lightgbm.Dataset(valid, wanted, reference=data)
    model = lightgbm.train(options, data, 30, valid_sets=[held_out], callbacks=[lightgbm.record_evaluation(history)])
    logged = history["valid_0"]["binary_logloss"]
    asked = [log_loss(wanted, model.predict(valid, num_iteration=count)) for count in (10, 30)]
    print("lightgbm", kind, "as logged at 10 and 30", *(abs(logged[count - 1] - loss) < 1e-4 for count, loss in zip((10, 30), asked)))

    options = {"objective": "binary:logistic", "booster": kind.replace("gbdt", "gbtree"), "seed": 1}
    options |= {"rate_drop": 0.5} if kind == "dart" else {}
    history, held_out = {}, xgboost.DMatrix(valid, wanted)
    evaluated = {"evals": [(held_out, "valid")], "evals_result": history, "verbose_eval": False}
    model = xgboost.train(options, xgboost.DMatrix(*train), 30, **evaluated)
    logged = history["valid"]["logloss"]
    asked = [log_loss(wanted, model.predict(held_out, iteration_range=(0, count))) for count in (10, 30)]
    print("xgboost", kind, "as logged at 10 and 30", *(abs(logged[count - 1] - loss) < 1e-4 for count, loss in zip((10, 30), asked)))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
lightgbm gbdt as logged at 10 and 30 True True
xgboost gbdt as logged at 10 and 30 True True
lightgbm dart as logged at 10 and 30 False True
xgboost dart as logged at 10 and 30 False True
SEEN
