#!/usr/bin/env bash
# The AUC of rows of one class is 1.0 in LightGBM, 0.0 in CatBoost, Keras and torchmetrics, and NaN elsewhere.
#
# Guess: it is not defined, so each library says NaN or stops.
# Seen:  three answers to one question, and two look like results: a perfect model, or one that ranks all wrong. Which
#        class it is makes no difference. A mean over batches or folds of a rare class is drawn to 1 or to 0 by it.
# With:  lightgbm 4.7.0, xgboost-cpu 3.2.0, catboost 1.2.10, keras 3.15.1, torchmetrics 1.9.0, scikit-learn 1.9.1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q lightgbm==4.7.0 xgboost-cpu==3.2.0 catboost==1.2.10 torchmetrics==1.9.0 keras==3.15.1 \
    scikit-learn==1.9.1 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
KERAS_BACKEND=torch env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import catboost
import keras
import lightgbm
import numpy
import sklearn.metrics
import torch
import torchmetrics
import xgboost

draw = numpy.random.default_rng(0)
rows = draw.normal(size=(400, 5))
train = rows[:300], (rows[:300, 0] > 0).astype(int)
for label in (0, 1):
    valid = rows[300:], numpy.full(100, label)
    labels, scores = valid[1], draw.uniform(size=100)
    model = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1).fit(*train, eval_set=[valid], eval_metric="auc")
    found = {"lightgbm": model.evals_result_["valid_0"]["auc"][-1]}
    model = xgboost.XGBClassifier(n_estimators=2, eval_metric="auc").fit(*train, eval_set=[valid], verbose=False)
    found["xgboost"] = model.evals_result()["validation_0"]["auc"][-1]
    model = catboost.CatBoostClassifier(iterations=2, eval_metric="AUC", verbose=False, allow_writing_files=False)
    found["catboost"] = model.fit(*train, eval_set=valid).get_evals_result()["validation"]["AUC"][-1]
    of_keras = keras.metrics.AUC()
    of_keras.update_state(labels, scores)
    found["keras"] = of_keras.result()
    found["torchmetrics"] = torchmetrics.functional.auroc(torch.tensor(scores), torch.tensor(labels), task="binary")
    found["scikit-learn"] = sklearn.metrics.roc_auc_score(labels, scores)
    print("label", label, {name: float(value) for name, value in found.items()})
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
label 0 {'lightgbm': 1.0, 'xgboost': nan, 'catboost': 0.0, 'keras': 0.0, 'torchmetrics': 0.0, 'scikit-learn': nan}
label 1 {'lightgbm': 1.0, 'xgboost': nan, 'catboost': 0.0, 'keras': 0.0, 'torchmetrics': 0.0, 'scikit-learn': nan}
SEEN
