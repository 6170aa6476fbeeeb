#!/usr/bin/env bash
# CatBoost logs an F1 of 0.89 for a model whose F1 is 0.50, and LightGBM two losses for the same rows, by class weights.
#
# Guess: class weights change what is learnt, not how it is measured: a metric is that of the rows, in each library,
#        and the same rows as training and as validation set have one loss.
# Seen:  CatBoost weighs the rows of the validation set, too: precision and F1 are those of balanced classes, and rise
#        with `scale_pos_weight`. LightGBM's `class_weight` weighs the training set alone, so that one table has a loss
#        of 0.178 in training and 0.209 in validation: a gap without overfitting. XGBoost's `scale_pos_weight` enters no
#        metric, and weighs the training alone.
# With:  catboost 1.2.10, lightgbm 4.7.0, xgboost-cpu 3.2.0, scikit-learn 1.6.1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
packages="catboost==1.2.10 lightgbm==4.7.0 xgboost-cpu==3.2.0 scikit-learn==1.6.1 numpy==2.4.6"
"$folder/env/bin/pip" install -q $packages 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import catboost
import lightgbm
import numpy as np
import xgboost
from sklearn.metrics import f1_score, log_loss

random = np.random.default_rng(0)
table = random.random((2000, 3))
target = (random.random(2000) < 0.02 + 0.3 * (table[:, 0] > 0.8)).astype(int)
weight = float((target == 0).sum() / target.sum())
for factor in (1.0, weight):
    settings = {"iterations": 40, "thread_count": 1, "verbose": 0, "allow_writing_files": False}
    model = catboost.CatBoostClassifier(eval_metric="F1", scale_pos_weight=factor, **settings)
    model.fit(table, target, eval_set=(table, target), use_best_model=False)
    logged = model.get_evals_result()["validation"]
    f1, loss = f1_score(target, model.predict(table)), log_loss(target, model.predict_proba(table)[:, 1])
    print(f"catboost | weight {factor:.0f} | logged F1 {logged['F1'][-1]:.2f}", end="")
    print(f", loss {logged['Logloss'][-1]:.3f}", end="")
    print(f" | scikit-learn F1 {f1:.2f}, loss {loss:.3f}")
model = lightgbm.LGBMClassifier(n_estimators=40, verbose=-1, n_jobs=1, class_weight="balanced")
model.fit(table, target, eval_set=[(table, target), (table.copy(), target.copy())])
logged = [values["binary_logloss"][-1] for values in model.evals_result_.values()]
loss = log_loss(target, model.predict_proba(table)[:, 1])
print("lightgbm | training {:.3f}, validation {:.3f}".format(*logged), f"| scikit-learn {loss:.3f}")
model = xgboost.XGBClassifier(n_estimators=40, n_jobs=1, eval_metric="logloss", scale_pos_weight=weight)
model.fit(table, target, eval_set=[(table, target)], verbose=False)
logged = model.evals_result()["validation_0"]["logloss"][-1]
loss = log_loss(target, model.predict_proba(table)[:, 1])
print(f"xgboost  | validation {logged:.3f} | scikit-learn {loss:.3f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
catboost | weight 1 | logged F1 0.41, loss 0.163 | scikit-learn F1 0.41, loss 0.163
catboost | weight 11 | logged F1 0.89, loss 0.284 | scikit-learn F1 0.50, loss 0.321
lightgbm | training 0.178, validation 0.209 | scikit-learn 0.209
xgboost  | validation 0.095 | scikit-learn 0.095
SEEN
