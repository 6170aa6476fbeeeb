#!/usr/bin/env bash
# LightGBM's `gamma_deviance` grows with the rows, tenfold on ten times as many: a sum among metrics that are means.
#
# Guess: a metric of LightGBM is a mean over rows, as `gamma`, `l2` and XGBoost's `gamma-deviance` are, and as
#        scikit-learn's `mean_gamma_deviance` is.
# Seen:  one model has about 51 on 100 rows and about 532 on 1000 that are like them; the mean is 0.5 on both. So a
#        validation set a tenth the size of the training set looks ten times better, folds of `cv` differ by their rows,
#        and a `min_delta` of early stopping depends on the size of the set. XGBoost writes the mean.
# With:  lightgbm 4.7.0, xgboost-cpu 3.2.0, scikit-learn 1.6.1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q lightgbm==4.7.0 xgboost-cpu==3.2.0 scikit-learn==1.6.1 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import lightgbm
import numpy as np
import xgboost
from sklearn.metrics import mean_gamma_deviance

random = np.random.default_rng(0)
table = random.random((1000, 2))
target = np.exp(table[:, 0]) * random.gamma(2, 0.5, 1000)
for rows in (100, 1000):
    part, truth, scores = table[:rows], target[:rows], {}
    train = lightgbm.Dataset(table, target, free_raw_data=False)
    settings = {"objective": "gamma", "metric": ["gamma_deviance", "gamma"], "verbose": -1, "num_threads": 1}
    record = [lightgbm.record_evaluation(scores)]
    valid = [lightgbm.Dataset(part, truth, reference=train)]
    model = lightgbm.train(settings, train, 5, valid_sets=valid, callbacks=record)
    last = {name: round(float(values[-1]), 2) for name, values in scores["valid_0"].items()}
    print("lightgbm", rows, last, "| scikit-learn", round(mean_gamma_deviance(truth, model.predict(part)), 2))
    settings, scores = {"objective": "reg:gamma", "eval_metric": ["gamma-deviance", "gamma-nloglik"], "nthread": 1}, {}
    pair = [(xgboost.DMatrix(part, truth), "valid")]
    train = xgboost.DMatrix(table, target)
    model = xgboost.train(settings, train, 5, evals=pair, evals_result=scores, verbose_eval=False)
    last = {name: round(float(values[-1]), 2) for name, values in scores["valid"].items()}
    print("xgboost ", rows, last, "| scikit-learn", round(mean_gamma_deviance(truth, model.predict(pair[0][0])), 2))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
lightgbm 100 {'gamma_deviance': 51.21, 'gamma': 1.51} | scikit-learn 0.51
xgboost  100 {'gamma-deviance': 0.38, 'gamma-nloglik': 1.44} | scikit-learn 0.38
lightgbm 1000 {'gamma_deviance': 532.21, 'gamma': 1.5} | scikit-learn 0.53
xgboost  1000 {'gamma-deviance': 0.41, 'gamma-nloglik': 1.44} | scikit-learn 0.41
SEEN
