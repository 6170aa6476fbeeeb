#!/usr/bin/env bash
# The built-in log loss rises by round while the model improves, once the objective is a function of one's own.
#
# Guess: `binary_logloss` and `logloss` know what they are given: the logistic loss written by hand logs about the same
#        as the built-in objective, which it repeats.
# Seen:  both metrics take raw scores for probabilities, cut at nearly 0 and nearly 1. XGBoost goes from 1.33 to 3.51,
#        where the AUC rises as with the built-in one, whose loss falls to 0.44: early stopping would keep round 0.
#        LightGBM starts at 3.98. Its `binary_error` cuts raw scores at 0.5, and half of the rows are wrong at first.
# With:  lightgbm 4.7.0, xgboost-cpu 3.2.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q lightgbm==4.7.0 xgboost-cpu==3.2.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import lightgbm
import numpy as np
import xgboost

random = np.random.default_rng(0)
table = random.random((2000, 3))
target = (random.random(2000) < table[:, 0]).astype(float)


def logistic(scores: np.ndarray, rows: "lightgbm.Dataset | xgboost.DMatrix") -> tuple[np.ndarray, np.ndarray]:
    chances = 1 / (1 + np.exp(-scores))
    return chances - rows.get_label(), chances * (1 - chances)


def show(library: str, objective: str, scores: dict[str, list[float]]) -> None:
    for name, values in scores.items():
        print(f"{library} | {objective} | {name}", *(f"{value:.2f}" for value in values))


for objective in ("binary", logistic):
    scores = {}
    metrics = ["binary_logloss", "binary_error", "auc"]
    settings = {"objective": objective, "metric": metrics, "verbose": -1, "num_threads": 1}
    valid = [lightgbm.Dataset(table, target)]
    record = [lightgbm.record_evaluation(scores)]
    lightgbm.train(settings, lightgbm.Dataset(table, target), 8, valid_sets=valid, callbacks=record)
    show("lightgbm", "built-in" if objective == "binary" else "by hand", scores["valid_0"])
rows = xgboost.DMatrix(table, target)
for objective in (None, logistic):
    scores = {}
    settings = {"eval_metric": ["logloss", "error", "auc"], "nthread": 1}
    settings |= {} if objective else {"objective": "binary:logistic"}
    given = {"obj": objective, "evals": [(rows, "valid")], "evals_result": scores, "verbose_eval": False}
    xgboost.train(settings, rows, 8, **given)
    show("xgboost", "by hand" if objective else "built-in", scores["valid"])
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
lightgbm | built-in | binary_logloss 0.66 0.63 0.60 0.58 0.56 0.55 0.53 0.52
lightgbm | built-in | binary_error 0.23 0.22 0.22 0.21 0.21 0.21 0.21 0.21
lightgbm | built-in | auc 0.85 0.86 0.86 0.86 0.87 0.87 0.87 0.87
lightgbm | by hand | binary_logloss 3.98 3.90 3.74 3.47 3.24 3.01 3.01 3.10
lightgbm | by hand | binary_error 0.51 0.51 0.51 0.37 0.33 0.32 0.30 0.27
lightgbm | by hand | auc 0.85 0.86 0.86 0.86 0.87 0.87 0.87 0.87
xgboost | built-in | logloss 0.60 0.54 0.51 0.48 0.47 0.45 0.44 0.44
xgboost | built-in | error 0.22 0.21 0.21 0.21 0.20 0.20 0.20 0.20
xgboost | built-in | auc 0.85 0.87 0.87 0.88 0.88 0.89 0.89 0.89
xgboost | by hand | logloss 1.33 2.34 3.13 3.61 3.71 3.57 3.61 3.51
xgboost | by hand | error 0.23 0.22 0.22 0.22 0.22 0.22 0.22 0.21
xgboost | by hand | auc 0.85 0.87 0.87 0.88 0.88 0.89 0.89 0.89
SEEN
