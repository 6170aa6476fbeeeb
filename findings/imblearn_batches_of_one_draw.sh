#!/usr/bin/env bash
# A model that trains on the balanced batches of imbalanced-learn sees 40 of 1,000 rows, in each epoch the same.
#
# Guess: each epoch draws anew from the large class, so that after some epochs most rows were seen.
# Seen:  the generator draws once, as it is made: 20 rows of each class, in one fixed order, for ever. 96 percent of the
#        rows are never read, however long the run. Made anew for each epoch without a `random_state`, it draws others.
# With:  imbalanced-learn 0.14.2, scikit-learn 1.9.1, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q imbalanced-learn==0.14.2 scikit-learn==1.9.1 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import numpy
from imblearn.tensorflow import balanced_batch_generator

rows, labels = numpy.arange(1000.0).reshape(-1, 1), numpy.array([0] * 980 + [1] * 20)
batches, steps = balanced_batch_generator(rows, labels, batch_size=10, random_state=0)
epochs = [numpy.concatenate([next(batches)[0] for _ in range(steps)]).ravel() for _ in range(50)]
print(f"made once | steps of an epoch {steps} | rows of an epoch {len(epochs[0])}", end=" | ")
print("rows seen in 50 epochs", len(numpy.unique(epochs)))
print("the same order in each epoch", all((epoch == epochs[0]).all() for epoch in epochs))
seen = set()
for _ in range(50):
    batches, steps = balanced_batch_generator(rows, labels, batch_size=10)
    seen.update(row for _ in range(steps) for row in next(batches)[0].ravel())
print("made for each epoch | rows seen in 50 epochs: more than 600", len(seen) > 600)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
made once | steps of an epoch 4 | rows of an epoch 40 | rows seen in 50 epochs 40
the same order in each epoch True
made for each epoch | rows seen in 50 epochs: more than 600 True
SEEN
