#!/usr/bin/env bash
# scikit-learn's MLP logs a loss that no evaluation of the model can reach, and no best loss with early stopping.
#
# Guess: loss_curve_ is the log loss of the training rows, so that it can be held beside that of other rows;
#        best_loss_ is its lowest.
# Seen:  it includes alpha times half the squared weights by rows: .828 beside a log loss of .744 (alpha 5); with
#        early_stopping=True best_loss_ is None.
# With:  scikit-learn 1.9.1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q scikit-learn==1.9.1 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - <<'PYTHON' | tee seen.txt
import warnings

import numpy
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier

warnings.simplefilter("ignore")
rows = numpy.random.RandomState(0).randn(200, 5)
labels = (rows[:, 0] > 0).astype(int)
model = MLPClassifier((8,), alpha=5.0, max_iter=50, random_state=0).fit(rows, labels)
penalty = 5.0 / 2 * sum((weights**2).sum() for weights in model.coefs_) / len(rows)
logged, measured = model.loss_curve_[-1], log_loss(labels, model.predict_proba(rows))
print("logged is above the log loss by", round(logged - measured, 2), "and the penalty is", round(penalty, 2))
print("best_loss_", MLPClassifier((8,), early_stopping=True, random_state=0).fit(rows, labels).best_loss_)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
logged is above the log loss by 0.08 and the penalty is 0.08
best_loss_ None
SEEN
