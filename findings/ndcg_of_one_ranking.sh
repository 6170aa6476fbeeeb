#!/usr/bin/env bash
# One ranking has an NDCG of 0.617 or 0.706, and a query without anything relevant one of 1.0 or 0.0, by library.
#
# Guess: NDCG of the same scores and labels is one number, and a query without a relevant document has none.
# Seen:  LightGBM and XGBoost count a label of 3 as 2**3 - 1, CatBoost, scikit-learn and torchmetrics as 3. A query
#        without anything relevant is perfect for the three that boost, and worth 0 for the other two. Where half of
#        the queries are such, the mean cannot be below 0.5, or not above it.
# With:  lightgbm 4.7.0, xgboost-cpu 3.2.0, catboost 1.2.10, scikit-learn 1.9.1, torchmetrics 1.9.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q lightgbm==4.7.0 xgboost-cpu==3.2.0 catboost==1.2.10 scikit-learn==1.9.1 \
    torchmetrics==1.9.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import catboost.utils
import lightgbm
import numpy
import sklearn.metrics
import torch
import xgboost
from torchmetrics.functional.retrieval import retrieval_normalized_dcg

scores, rows = numpy.array([5.0, 4.0, 3.0, 2.0, 1.0]), numpy.zeros((5, 1))
for labels in numpy.array([[1, 0, 3, 2, 0], [0, 0, 0, 0, 0]]):
    found, history = {}, {}
    data = lightgbm.Dataset(rows, labels, group=[5], init_score=scores)
    record = [lightgbm.record_evaluation(history)]
    lightgbm.train({"metric": "ndcg", "eval_at": [5], "verbose": -1}, data, 1, valid_sets=[data], callbacks=record)
    found["lightgbm"] = history["training"]["ndcg@5"][-1]
    data, history = xgboost.DMatrix(rows, labels, group=[5], base_margin=scores), {}
    options = {"evals": [(data, "valid")], "evals_result": history, "verbose_eval": False}
    xgboost.train({"eval_metric": "ndcg@5"}, data, 1, **options)
    found["xgboost"] = history["valid"]["ndcg@5"][-1]
    (found["catboost"],) = catboost.utils.eval_metric(labels.astype(float), scores, "NDCG", group_id=[0] * 5)
    found["scikit-learn"] = sklearn.metrics.ndcg_score([labels], [scores])
    found["torchmetrics"] = retrieval_normalized_dcg(torch.tensor(scores), torch.tensor(labels))
    print("labels", *labels, {name: round(float(value), 3) for name, value in found.items()})
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
labels 1 0 3 2 0 {'lightgbm': 0.617, 'xgboost': 0.617, 'catboost': 0.706, 'scikit-learn': 0.706, 'torchmetrics': 0.706}
labels 0 0 0 0 0 {'lightgbm': 1.0, 'xgboost': 1.0, 'catboost': 1.0, 'scikit-learn': 0.0, 'torchmetrics': 0.0}
SEEN
