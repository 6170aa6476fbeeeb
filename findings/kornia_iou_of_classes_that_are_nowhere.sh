#!/usr/bin/env bash
# A segmentation that is wrong at each pixel has a mean IoU of 0.998 in kornia: 998 of its 1,000 classes are nowhere.
#
# Guess: a class that is neither in the labels nor in the output has no IoU and is left out, or counts 0.
# Seen:  `kornia.metrics.mean_iou` adds a small number above and below, and 0/0 becomes 1 for each such class. Images
#        hold few of many classes, so that the score depends on their number: a model that is wrong everywhere has 0
#        with 2 classes, 0.8 with 10, 0.998 with 1,000. torchmetrics and scikit-learn leave such classes out.
# With:  kornia 0.9.0, torchmetrics 1.9.0, scikit-learn 1.9.1, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
packages="kornia==0.9.0 torchmetrics==1.9.0 scikit-learn==1.9.1 torch==2.13.0 numpy==2.4.6"
"$folder/env/bin/pip" install -q $packages 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import kornia
import sklearn.metrics
import torch
from torchmetrics.segmentation import MeanIoU

labels = torch.zeros(1, 8, 8, dtype=int)
half = labels.clone()
half[:, :4] = 1
for title, output in {"wrong at each pixel": torch.ones_like(labels), "wrong at half": half, "right": labels}.items():
    print(title, end="")
    for classes in (2, 10, 100, 1000):
        ours = kornia.metrics.mean_iou(output, labels, classes).mean().item()
        other = MeanIoU(num_classes=classes, input_format="index")(output, labels).item()
        print(f" | {classes} classes: kornia {ours:.3f}, torchmetrics {other:.2f}", end="")
    print(f" | scikit-learn {sklearn.metrics.jaccard_score(labels.ravel(), output.ravel(), average='macro'):.2f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
wrong at each pixel | 2 classes: kornia 0.000, torchmetrics 0.00 | 10 classes: kornia 0.800, torchmetrics 0.00 | 100 classes: kornia 0.980, torchmetrics 0.00 | 1000 classes: kornia 0.998, torchmetrics 0.00 | scikit-learn 0.00
wrong at half | 2 classes: kornia 0.250, torchmetrics 0.25 | 10 classes: kornia 0.850, torchmetrics 0.25 | 100 classes: kornia 0.985, torchmetrics 0.25 | 1000 classes: kornia 0.998, torchmetrics 0.25 | scikit-learn 0.25
right | 2 classes: kornia 1.000, torchmetrics 1.00 | 10 classes: kornia 1.000, torchmetrics 1.00 | 100 classes: kornia 1.000, torchmetrics 1.00 | 1000 classes: kornia 1.000, torchmetrics 1.00 | scikit-learn 1.00
SEEN
