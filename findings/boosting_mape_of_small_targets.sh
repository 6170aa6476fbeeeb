#!/usr/bin/env bash
# Two boosting libraries log a MAPE of 0.03 for a model that is off by a third, where the targets are below 1.
#
# Guess: MAPE has no unit: targets in kilometres and in metres have the same, and the libraries agree with scikit-learn.
# Seen:  LightGBM and CatBoost divide by 1 where the target is smaller, so that their MAPE is the mean absolute error
#        for shares, rates and prices in thousands: 0.03 and 0.02 for 0.33 and 0.28. The same rows times 100 have the
#        true value. XGBoost divides by the target. CatBoost's sMAPE, which is in percent, is right in both units.
# With:  lightgbm 4.7.0, xgboost-cpu 3.2.0, catboost 1.2.10, scikit-learn 1.6.1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
packages="lightgbm==4.7.0 xgboost-cpu==3.2.0 catboost==1.2.10 scikit-learn==1.6.1 numpy==2.4.6"
"$folder/env/bin/pip" install -q $packages 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import catboost
import lightgbm
import numpy as np
import xgboost
from sklearn.metrics import mean_absolute_percentage_error

random = np.random.default_rng(0)
table = random.random((1000, 3))
shares = (0.05 + 0.1 * table[:, 0]) * random.uniform(0.5, 1.5, 1000)
for unit in (1, 100):
    target = unit * shares
    first = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, n_jobs=1)
    first.fit(table, target, eval_set=[(table.copy(), target)], eval_metric="mape")
    second = xgboost.XGBRegressor(n_estimators=5, n_jobs=1, eval_metric="mape")
    second.fit(table, target, eval_set=[(table, target)], verbose=False)
    settings = {"iterations": 5, "thread_count": 1, "verbose": 0, "allow_writing_files": False}
    third = catboost.CatBoostRegressor(custom_metric=["MAPE", "SMAPE"], **settings)
    third.fit(table, target, eval_set=(table, target))
    logged = third.get_evals_result()["validation"]
    logs = {
        "lightgbm": (first, first.evals_result_["valid_0"]["mape"][-1]),
        "xgboost": (second, second.evals_result()["validation_0"]["mape"][-1]),
        "catboost": (third, logged["MAPE"][-1]),
    }
    for library, (model, value) in logs.items():
        true = mean_absolute_percentage_error(target, model.predict(table))
        print(f"times {unit} | {library} | logged {value:.2f} | scikit-learn {true:.2f}")
    print(f"times {unit} | catboost | logged sMAPE {logged['SMAPE'][-1]:.1f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
times 1 | lightgbm | logged 0.03 | scikit-learn 0.33
times 1 | xgboost | logged 0.24 | scikit-learn 0.24
times 1 | catboost | logged 0.02 | scikit-learn 0.28
times 1 | catboost | logged sMAPE 25.1
times 100 | lightgbm | logged 0.33 | scikit-learn 0.33
times 100 | xgboost | logged 0.24 | scikit-learn 0.24
times 100 | catboost | logged 0.28 | scikit-learn 0.28
times 100 | catboost | logged sMAPE 25.1
SEEN
