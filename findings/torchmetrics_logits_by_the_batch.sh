#!/usr/bin/env bash
# The AUROC and the accuracy that torchmetrics computes of logits depend on how the rows are cut into batches.
#
# Guess: a metric that is updated batch by batch gives what it gives of all rows at once.
# Seen:  each update decides for itself whether it was given logits. A batch whose logits all lie between 0 and 1, as
#        those of a young model do, is taken for probabilities: its rows are cut at 0.5 in place of 0, and ranked
#        among the sigmoids of other batches. The same rows and logits: AUROC 1.0 whole, 0.75 in two batches.
# With:  torchmetrics 1.9.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torchmetrics==1.9.0 torch==2.13.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from torchmetrics.classification import BinaryAccuracy, BinaryAUROC

logits = torch.tensor([0.2, 0.3, 0.9, 0.1, -2.0, -1.0, 0.4, 2.0])
labels = torch.tensor([1, 1, 1, 1, 0, 0, 1, 1])
for metric in (BinaryAUROC(), BinaryAccuracy()):
    for size in (8, 4):
        metric.reset()
        for batch in zip(logits.split(size), labels.split(size)):
            metric.update(*batch)
        print(type(metric).__name__, "in batches of", size, metric.compute().item())
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
BinaryAUROC in batches of 8 1.0
BinaryAUROC in batches of 4 0.75
BinaryAccuracy in batches of 8 1.0
BinaryAccuracy in batches of 4 0.625
SEEN
