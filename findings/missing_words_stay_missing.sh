#!/usr/bin/env bash
# A column of words with gaps, made text by `astype(str)` before a model gets it: what becomes of the gaps.
#
# Guess: they become the word "nan", a category like others: a one-hot table has a column for it, and CatBoost trains.
# Seen:  so it is with pandas 2. With pandas 3 the gaps stay missing: the same code gives one input fewer, without a
#        word, so that weights of before do not fit; and CatBoost refuses the column that was made text for its sake.
# With:  pandas 2.3.3 and 3.1.1, catboost 1.2.10, numpy 2.1.3
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/gaps.py" <<'PYTHON'
import pandas as pd
from catboost import CatBoostClassifier, CatBoostError
words = pd.Series(["red", None, "blue", "red", None, "blue"], dtype=object)
text = words.astype(str)
print(f"{int(text.isna().sum())} missing; {pd.get_dummies(text).shape[1]} one-hot inputs")
model = CatBoostClassifier(iterations=2, cat_features=[0], allow_writing_files=False, verbose=False)
try:
    model.fit(text.to_frame("colour"), [0, 1, 0, 0, 1, 0])
    print("CatBoost trains")
except CatBoostError as error:
    print("CatBoost refuses", str(error).partition(" :")[0].rpartition("=")[2])
PYTHON
for pandas in 2.3.3 3.1.1; do
    python3 -m venv "$folder/$pandas"
    "$folder/$pandas/bin/pip" install -q "pandas==$pandas" catboost==1.2.10 numpy==2.1.3 2>/dev/null
    echo "pandas $pandas: $("$folder/$pandas/bin/python" "$folder/gaps.py" 2>/dev/null | paste -sd ';')"
done | tee "$folder/seen.txt"
diff "$folder/seen.txt" - <<'SEEN' && echo "as found"
pandas 2.3.3: 0 missing; 3 one-hot inputs;CatBoost trains
pandas 3.1.1: 2 missing; 2 one-hot inputs;CatBoost refuses nan
SEEN
