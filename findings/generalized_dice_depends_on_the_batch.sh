#!/usr/bin/env bash
# A model that paints a lesion over each healthy image has a generalized Dice of 1.0 image by image, and of 0.57 at once.
#
# Guess: torchmetrics takes the score of each image and then the mean, so that the size of a batch changes nothing.
# Seen:  a class weighs one over its pixels in the image. Where an image has none, the weight is the largest of the batch:
#        in a batch of one there is none, so that the class is left out, and a lesion that is found where none is costs
#        nothing. In larger batches the neighbours decide, and a weight may be that of another class. Of six images one
#        model has 1.00, 0.57 or 0.63 by the size of a batch, and 0.57 or 0.70 in one batch by the order of rows. With
#        `weight_type="linear"` it is 0.70 for each size and order. MeanIoU is 0.75 for each.
# With:  torchmetrics 1.9.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torchmetrics==1.9.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from torchmetrics.segmentation import GeneralizedDiceScore, MeanIoU

# Six images with an organ (class 1); three of them have a lesion (class 2) as well.
truth = torch.zeros(6, 16, 16, dtype=torch.long)
truth[:, 2:8, 2:8] = 1
for image, pixels in ((1, 4), (2, 8), (4, 6)):
    truth[image, 10, :pixels] = 2
outputs = truth.clone()
for image in (0, 3, 5):
    outputs[image, 9:] = 2


def score(metric, order, size):
    for rows in torch.tensor(order).split(size):
        metric.update(outputs[rows], truth[rows])
    return f"{float(metric.compute()):.2f}"


settings = {"num_classes": 3, "include_background": False, "input_format": "index"}
for order in ([0, 1, 2, 3, 4, 5], [0, 3, 5, 1, 2, 4]):
    print("images in the order", *order)
    for name, make in (
        ("GeneralizedDiceScore", lambda: GeneralizedDiceScore(**settings)),
        ("GeneralizedDiceScore, simple", lambda: GeneralizedDiceScore(weight_type="simple", **settings)),
        ("GeneralizedDiceScore, linear", lambda: GeneralizedDiceScore(weight_type="linear", **settings)),
        ("MeanIoU", lambda: MeanIoU(**settings)),
    ):
        print(f"  {name}, in batches of 1, 2, 3 and 6:", *(score(make(), order, size) for size in (1, 2, 3, 6)))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
images in the order 0 1 2 3 4 5
  GeneralizedDiceScore, in batches of 1, 2, 3 and 6: 1.00 0.57 0.63 0.57
  GeneralizedDiceScore, simple, in batches of 1, 2, 3 and 6: 1.00 0.60 0.65 0.59
  GeneralizedDiceScore, linear, in batches of 1, 2, 3 and 6: 0.70 0.70 0.70 0.70
  MeanIoU, in batches of 1, 2, 3 and 6: 0.75 0.75 0.75 0.75
images in the order 0 3 5 1 2 4
  GeneralizedDiceScore, in batches of 1, 2, 3 and 6: 1.00 0.80 0.90 0.70
  GeneralizedDiceScore, simple, in batches of 1, 2, 3 and 6: 1.00 0.80 0.90 0.70
  GeneralizedDiceScore, linear, in batches of 1, 2, 3 and 6: 0.70 0.70 0.70 0.70
  MeanIoU, in batches of 1, 2, 3 and 6: 0.75 0.75 0.75 0.75
SEEN
