#!/usr/bin/env bash
# CatBoost's test_error.tsv names the last evaluation set without a number, and keeps rounds that the model dropped.
#
# Guess: the columns of two evaluation sets are Logloss:0 and Logloss:1, and the file has as many rows as the model
#        has trees.
# Seen:  the first set is Logloss:0, the last plain Logloss; get_evals_result calls them validation_0 and
#        validation_1; the file goes on for the rounds of patience that use_best_model cut off.
# With:  catboost 1.2.10
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q catboost==1.2.10 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - <<'PYTHON' | tee seen.txt
from pathlib import Path

import catboost
import numpy

draw = numpy.random.default_rng(0)
rows = draw.normal(size=(400, 5))
labels = (rows[:, 0] + draw.normal(size=400) > 0).astype(int)
first, last = (rows[200:300], labels[200:300]), (rows[300:], labels[300:])

model = catboost.CatBoostClassifier(iterations=5, verbose=False, train_dir="two", thread_count=1)
model.fit(rows[:200], labels[:200], eval_set=[first, last])
header, *lines = Path("two/test_error.tsv").read_text().splitlines()
print(header.split("\t"), sorted(model.get_evals_result()))
written = [float(line.split("\t")[2]) for line in lines]
print("plain column is validation_1", numpy.allclose(written, model.get_evals_result()["validation_1"]["Logloss"]))

model = catboost.CatBoostClassifier(
    iterations=100, learning_rate=1.0, verbose=False, train_dir="best", early_stopping_rounds=10, thread_count=1
)
model.fit(rows[:200], labels[:200], eval_set=last, use_best_model=True)
kept, logged = model.tree_count_, len(Path("best/test_error.tsv").read_text().splitlines()) - 1
print("rounds logged beyond the trees kept", logged - kept)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
['iter', 'Logloss:0', 'Logloss'] ['learn', 'validation_0', 'validation_1']
plain column is validation_1 True
rounds logged beyond the trees kept 10
SEEN
