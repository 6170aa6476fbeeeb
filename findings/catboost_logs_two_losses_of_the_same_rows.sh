#!/usr/bin/env bash
# CatBoost logs 0.55 as the training loss of rows that its model has a loss of 0.44 on, where a feature has categories.
#
# Guess: the loss that is logged for the training set is that of the model on those rows: given once more as validation
#        set they have the same loss, and a validation loss near the training loss says that nothing is overfitted.
# Seen:  in training a category is a count of the rows before it; the finished model counts all rows. So the log of one
#        set has two losses, 0.55 and 0.44. With 1,000 categories of two rows each it is 0.61 against 0.40, while
#        validation is at 0.61: no gap in the log, and one of 0.2 by `predict`. Of labels without a signal it may be the
#        other way round, 0.65 and 0.75. Features that are numbers have one loss.
# With:  catboost 1.2.10, scikit-learn 1.9.1, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q catboost==1.2.10 scikit-learn==1.9.1 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import numpy
from catboost import CatBoostClassifier
from sklearn.metrics import log_loss


def rows(draw, weights, as_words):
    category = draw.integers(0, len(weights), 2000)
    labels = (draw.random(2000) < 1 / (1 + numpy.exp(-weights[category]))).astype(int)
    return (category.astype(str) if as_words else category)[:, None], labels


for categories, signal, as_words in ((500, 2.0, True), (1000, 2.0, True), (500, 0.0, True), (500, 2.0, False)):
    draw = numpy.random.default_rng(0)
    weights = signal * draw.normal(size=categories)
    training, others = rows(draw, weights, as_words), rows(draw, weights, as_words)
    model = CatBoostClassifier(
        500, learning_rate=0.1, cat_features=[0] if as_words else [], random_seed=1, thread_count=1, verbose=0
    )
    model.fit(*training, eval_set=[training, others], use_best_model=False)
    logged = {name: losses["Logloss"][-1] for name, losses in model.get_evals_result().items()}
    print(categories, "categories" if as_words else "numbers", "signal", signal, end=" | ")
    print(f"logged as training {logged['learn']:.2f}, as validation {logged['validation_0']:.2f}", end=", ")
    print(f"by predict {log_loss(training[1], model.predict_proba(training[0])):.2f}", end=" | ")
    print(f"other rows {logged['validation_1']:.2f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
500 categories signal 2.0 | logged as training 0.55, as validation 0.44, by predict 0.44 | other rows 0.61
1000 categories signal 2.0 | logged as training 0.61, as validation 0.40, by predict 0.40 | other rows 0.61
500 categories signal 0.0 | logged as training 0.65, as validation 0.75, by predict 0.75 | other rows 0.74
500 numbers signal 2.0 | logged as training 0.52, as validation 0.52, by predict 0.52 | other rows 0.63
SEEN
