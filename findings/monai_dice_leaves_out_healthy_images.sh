#!/usr/bin/env bash
# A model that paints a lesion over each healthy image has a mean Dice of 1.0 in MONAI, and one that misses none of it.
#
# Guess: an image without a lesion, on which the model finds one, has Dice 0, and lowers the mean.
# Seen:  `DiceMetric` leaves out each image whose label is empty, whatever the model says of it. With a lesion in one
#        image of four and all four painted, the mean is 1.0 of one image, and 0.25 with `ignore_empty=False`. Only
#        `get_not_nans=True` shows how many images count. `DiceLoss` of the same rows is near 0.75.
# With:  monai 1.6.1, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q monai==1.6.1 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from monai.losses import DiceLoss
from monai.metrics import DiceMetric, MeanIoU

labels = torch.zeros(4, 1, 8, 8)
labels[0] = 1
for name, predicted in {
    "painted everywhere": torch.ones(4, 1, 8, 8),
    "as labelled": labels,
}.items():
    found = {}
    for kind, metric in {
        "Dice": DiceMetric(get_not_nans=True),
        "IoU": MeanIoU(get_not_nans=True),
        "Dice of all": DiceMetric(get_not_nans=True, ignore_empty=False),
    }.items():
        metric(predicted, labels)
        value, images = metric.aggregate()
        found[kind] = round(float(value), 3), f"of {int(images)}"
    print(name, found, "DiceLoss", round(float(DiceLoss()(predicted, labels)), 3))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
painted everywhere {'Dice': (1.0, 'of 1'), 'IoU': (1.0, 'of 1'), 'Dice of all': (0.25, 'of 4')} DiceLoss 0.75
as labelled {'Dice': (1.0, 'of 1'), 'IoU': (1.0, 'of 1'), 'Dice of all': (1.0, 'of 4')} DiceLoss 0.0
SEEN
