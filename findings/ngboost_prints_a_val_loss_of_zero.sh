#!/usr/bin/env bash
# NGBoost prints `val_loss=0.0000` in each round of a run without a validation set, while its real loss there explodes.
#
# Guess: a val_loss that is printed was measured; without validation data there is none.
# Seen:  the line always has a val_loss, and it is 0.0000 where nothing was measured. The negative log-likelihood of
#        NGBoost ends below zero, so 0.0000 is no bound that gives it away. On rows that were kept back the loss of the
#        same model is 48.69. With `X_val` the same column holds the measured loss.
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
for name, held in (("no validation set", {}), ("validation set", {"X_val": other, "Y_val": truth})):
    print(name)
    model = NGBRegressor(n_estimators=300, learning_rate=0.1, verbose_eval=100, random_state=0)
    model.fit(table, target, **held)
    print(f"loss on the rows kept back {-model.pred_dist(other).logpdf(truth).mean():.2f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
no validation set
[iter 0] loss=0.5751 val_loss=0.0000 scale=1.0000 norm=0.6209
[iter 100] loss=-0.8793 val_loss=0.0000 scale=0.5000 norm=0.1644
[iter 200] loss=-1.3720 val_loss=0.0000 scale=0.5000 norm=0.1515
loss on the rows kept back 48.69
validation set
[iter 0] loss=0.5751 val_loss=0.5053 scale=1.0000 norm=0.6209
[iter 100] loss=-0.8793 val_loss=5.4915 scale=0.5000 norm=0.1644
[iter 200] loss=-1.3720 val_loss=33.4113 scale=0.5000 norm=0.1515
loss on the rows kept back 48.69
SEEN
