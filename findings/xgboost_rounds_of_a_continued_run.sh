#!/usr/bin/env bash
# XGBoost prints the rounds of a continued run from 0 again, while its best iteration counts from the first run on.
#
# Guess: the best iteration is a row of the log: `history[best_iteration]` is the best score, after `xgb_model`, too.
# Seen:  ten rounds are continued by up to thirty more. The log and `evals_result` begin at 0; `best_iteration` has ten
#        more than the row that is best, so that it points to another row or beyond the end. LightGBM prints from 11 on.
# With:  xgboost-cpu 3.2.0, lightgbm 4.7.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q xgboost-cpu==3.2.0 lightgbm==4.7.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import lightgbm
import numpy
import xgboost

draw = numpy.random.default_rng(0)
rows = draw.normal(size=(200, 3))
targets = rows[:, 0] + draw.normal(size=200)

train, valid = xgboost.DMatrix(rows[:150], targets[:150]), xgboost.DMatrix(rows[150:], targets[150:])
options, history = {"eta": 0.1, "nthread": 1}, {}
first = xgboost.train(options, train, 10)
log = {"evals": [(valid, "valid")], "evals_result": history, "verbose_eval": 100, "early_stopping_rounds": 3}
second = xgboost.train(options, train, 30, xgb_model=first, **log)
scores = history["valid"]["rmse"]
print("xgboost | rows of the log", len(scores), "the best row", int(numpy.argmin(scores)), end=" ")
print("best_iteration", second.best_iteration, "rounds of the model", second.num_boosted_rounds())

options = {"verbose": -1, "metric": "l2", "num_threads": 1, "learning_rate": 0.1}
train = lightgbm.Dataset(rows[:150], targets[:150], free_raw_data=False)
valid = lightgbm.Dataset(rows[150:], targets[150:], reference=train, free_raw_data=False)
first = lightgbm.train(options, train, 10)
history, printed = {}, []
callbacks = [lightgbm.record_evaluation(history), lambda env: printed.append(env.iteration + 1)]
second = lightgbm.train(options, train, 5, valid_sets=[valid], init_model=first, callbacks=callbacks)
print("lightgbm | rounds by number", *printed)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
[0]	valid-rmse:0.98464
[6]	valid-rmse:0.98003
xgboost | rows of the log 7 the best row 3 best_iteration 13 rounds of the model 17
lightgbm | rounds by number 11 12 13 14 15
SEEN
