#!/usr/bin/env bash
# NGBoost stops early, prints the best round and its loss, and predicts with the rounds after it, too.
#
# Guess: "Early stopping achieved, best iteration 15 (val_loss=0.24)" means a model of 15 rounds whose loss on that set
#        is 0.24, as in XGBoost's and LightGBM's classes for scikit-learn and in CatBoost.
# Seen:  the rounds of the patience stay and count: the loss of `pred_dist` on the same set is 0.63, and of the round
#        printed 0.24. Only `max_iter=model.best_val_loss_itr` in each call gives that. The longer the patience, the
#        worse the model: 20 rounds make 0.63, and 60 make 2.80.
# With:  ngboost 0.6.0, scikit-learn 1.6.1, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q ngboost==0.6.0 scikit-learn==1.6.1 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import numpy as np
from ngboost import NGBRegressor

random = np.random.default_rng(0)
parts = []
for _ in range(2):
    table = random.random((200, 3))
    parts.append((table, table[:, 0] + 0.3 * random.standard_normal(200)))
(table, target), (other, truth) = parts
for patience in (5, 20, 60):
    model = NGBRegressor(n_estimators=300, learning_rate=0.1, verbose=False, random_state=0)
    model.fit(table, target, X_val=other, Y_val=truth, early_stopping_rounds=patience)
    best = model.best_val_loss_itr
    predicted = -model.pred_dist(other).logpdf(truth).mean()
    cut = -model.pred_dist(other, max_iter=best).logpdf(truth).mean()
    print(f"patience {patience} | best round {best} | rounds kept {len(model.base_models)}", end=" | ")
    print(f"loss of predictions {predicted:.2f} | with max_iter {cut:.2f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
patience 5 | best round 15 | rounds kept 21 | loss of predictions 0.27 | with max_iter 0.24
patience 20 | best round 15 | rounds kept 36 | loss of predictions 0.63 | with max_iter 0.24
patience 60 | best round 15 | rounds kept 76 | loss of predictions 2.80 | with max_iter 0.24
SEEN
