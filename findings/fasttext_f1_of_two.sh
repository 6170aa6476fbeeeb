#!/usr/bin/env bash
# fastText has an F1 of 2.0 for a label, and leaves each test row out whose label it never saw.
#
# Guess: F1 is at most 1, and a row whose label is unknown counts as a mistake.
# Seen:  `test_label` counts no row as relevant: recall is NaN, and F1 is twice the precision. `test` and `test_label`
#        skip rows with unknown labels only, so that 15 rows of a new label change nothing: the count stays 5.
#        With 15 rows of a known label the same guesses have a precision of 0.25.
# With:  fasttext-wheel 0.9.2, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q fasttext-wheel==0.9.2 numpy==2.4.6 setuptools==80.9.0 pybind11==3.0.1 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
from pathlib import Path

import fasttext

Path("train.txt").write_text("__label__a red apple\n__label__b blue sky\n" * 200)
model = fasttext.train_supervised("train.txt", epoch=20, verbose=0)
known = "__label__a red apple\n" * 5
for name, rows in {
    "5 of a": known,
    "and 15 of c, a new label": known + "__label__c red apple\n" * 15,
    "and 15 of b": known + "__label__b red apple\n" * 15,
}.items():
    Path("test.txt").write_text(rows)
    count, precision, recall = model.test("test.txt")
    print(name, "| count", count, "precision", precision, "recall", recall, end=" | a: ")
    print(model.test_label("test.txt")["__label__a"])
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
5 of a | count 5 precision 1.0 recall 1.0 | a: {'precision': 1.0, 'recall': nan, 'f1score': 2.0}
and 15 of c, a new label | count 5 precision 1.0 recall 1.0 | a: {'precision': 1.0, 'recall': nan, 'f1score': 2.0}
and 15 of b | count 20 precision 0.25 recall 0.25 | a: {'precision': 0.25, 'recall': nan, 'f1score': 0.5}
SEEN
