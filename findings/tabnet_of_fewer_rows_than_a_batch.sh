#!/usr/bin/env bash
# TabNet logs a loss of exactly 0.0 in each epoch of a training set below 1,024 rows: it made no step.
#
# Guess: a last batch that is not full is trained on, or dropped; of 1,000 rows it is the one batch there is.
# Seen:  it is dropped, as there are then no batches. Each epoch runs, scores the validation set and logs a loss of
#        0.0, like that of a perfect model, with an accuracy that never moves. Early stopping ends it for want of
#        progress. With 24 rows more, or `drop_last=False`, it learns. Of 2,047 rows it sees 1,024 in each epoch.
# With:  pytorch-tabnet 4.1.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q pytorch-tabnet==4.1.0 torch==2.13.0 numpy==2.4.6 \
    scikit-learn==1.9.1 pandas==3.1.1 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | grep " | epochs " | tee seen.txt
import numpy
from pytorch_tabnet.tab_model import TabNetClassifier

draw = numpy.random.default_rng(0)
rows = draw.normal(size=(1024, 4)).astype("float32")
labels = (rows[:, 0] > 0).astype(int)
for count, options in ((1000, {}), (1024, {}), (1000, {"drop_last": False})):
    model = TabNetClassifier(verbose=0, seed=0)
    shown = (rows[:count], labels[:count])
    model.fit(*shown, eval_set=[shown], eval_metric=["accuracy"], max_epochs=12, patience=4, **options)
    losses, scores = model.history["loss"], model.history["val_0_accuracy"]
    print(count, options, "| epochs", len(losses), "| losses", "all 0.0" if set(losses) == {0.0} else "above 0", end="")
    print(" | accuracy", "stands still" if len(set(scores)) == 1 else f"rises: {scores[-1] > scores[0] + 0.1}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
1000 {} | epochs 5 | losses all 0.0 | accuracy stands still
1024 {} | epochs 12 | losses above 0 | accuracy rises: True
1000 {'drop_last': False} | epochs 12 | losses above 0 | accuracy rises: True
SEEN
