#!/usr/bin/env bash
# A model without a mistake has a macro F1 of 0.667 in Keras, and a macro AUROC of 0.667 in torchmetrics.
#
# Guess: a class without rows in the split is left out of a macro mean, or each metric of a library counts it as 0.
# Seen:  of three classes one has no row. Keras counts it as 0 in `F1Score` and leaves it out of `MeanIoU`. torchmetrics
#        leaves it out of F1, recall and average precision, and counts it as 0 in AUROC; it warns of the last two.
#        scikit-learn's F1 leaves it out, unless `labels` names it.
# With:  keras 3.15.1, torchmetrics 1.9.0, torch 2.13.0, scikit-learn 1.9.1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q keras==3.15.1 torchmetrics==1.9.0 torch==2.13.0 scikit-learn==1.9.1 2>/dev/null
cd "$folder"
KERAS_BACKEND=torch env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import keras
import sklearn.metrics
import torch
from torchmetrics.functional import auroc, average_precision, f1_score, recall

labels = torch.tensor([0, 0, 1, 1])
scores = torch.eye(3)[labels]
for metric in (f1_score, recall, average_precision, auroc):
    value = metric(scores, labels, task="multiclass", num_classes=3, average="macro")
    print("torchmetrics", metric.__name__, round(value.item(), 3))
f1 = keras.metrics.F1Score(average="macro")
f1.update_state(scores, scores)
overlap = keras.metrics.MeanIoU(num_classes=3)
overlap.update_state(labels, labels)
print("keras F1Score", round(float(f1.result()), 3), "MeanIoU", round(float(overlap.result()), 3))
for named in (None, [0, 1, 2]):
    value = sklearn.metrics.f1_score(labels, labels, average="macro", labels=named)
    print("scikit-learn f1_score of labels", named, round(float(value), 3))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
torchmetrics f1_score 1.0
torchmetrics recall 1.0
torchmetrics average_precision 1.0
torchmetrics auroc 0.667
keras F1Score 0.667 MeanIoU 1.0
scikit-learn f1_score of labels None 1.0
scikit-learn f1_score of labels [0, 1, 2] 0.667
SEEN
