#!/usr/bin/env bash
# A model that paints the object over each empty image has a Dice loss of exactly 0, and no gradient to unlearn it.
#
# Guess: an image without the object on which the model finds one has Dice 0 and so a loss of 1, or near it.
# Seen:  segmentation_models_pytorch leaves out each class that a batch has not, and keeps it in the mean as 0. So a
#        batch of empty images has loss 0 and gradient 0 whatever is painted; one pixel of the object in the batch makes
#        it 1. With several classes the loss is at most the share of those that the batch has: a model that is
#        wrong at each pixel has 0.1 where two of twenty classes are there, and 1.0 where all are. The curve of training
#        so follows which classes a batch holds. Jaccard and Tversky do the same. Lovasz and focal loss are high for
#        both, and MONAI's Dice loss of the empty batch is 1.
# With:  segmentation-models-pytorch 0.6.0, monai 1.6.1, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q monai==1.6.1 torch==2.13.0 numpy==2.4.6 2>/dev/null
"$folder/env/bin/pip" install -q --no-deps segmentation-models-pytorch==0.6.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import importlib.util
import sys
import types

import monai
import torch

# The package loads its encoders first, which need timm and torchvision; its losses need torch alone.
package = types.ModuleType("segmentation_models_pytorch")
package.__path__ = importlib.util.find_spec(package.__name__).submodule_search_locations
sys.modules[package.__name__] = package
from segmentation_models_pytorch import losses  # noqa: E402

kinds = (losses.DiceLoss, losses.JaccardLoss, losses.TverskyLoss, losses.LovaszLoss, losses.FocalLoss)
empty = torch.zeros(2, 1, 16, 16)
pixel = empty.clone()
pixel[0, 0, 0, 0] = 1
for name, truth in (("no object", empty), ("one pixel of it", pixel)):
    print(f"painted everywhere, {name} in the batch")
    for kind, loss in [(kind.__name__, kind("binary")) for kind in kinds] + [
        ("MONAI's DiceLoss", monai.losses.DiceLoss(sigmoid=True))
    ]:
        outputs = torch.full((2, 1, 16, 16), 2.0, requires_grad=True)
        value = loss(outputs, truth)
        value.backward()
        print(f"  {kind}: loss {float(value.detach()):.2f}, gradient", bool(outputs.grad.any()))
for present in (2, 10, 20):
    truth = torch.arange(400).reshape(1, 20, 20) % present
    wrong = torch.nn.functional.one_hot((truth + 1) % present, 20).permute(0, 3, 1, 2) * 20.0
    values = (f"{kind.__name__} {float(kind('multiclass')(wrong, truth)):.2f}" for kind in kinds)
    print(f"wrong at each pixel, {present} of 20 classes there:", ", ".join(values))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
painted everywhere, no object in the batch
  DiceLoss: loss 0.00, gradient False
  JaccardLoss: loss 0.00, gradient False
  TverskyLoss: loss 0.00, gradient False
  LovaszLoss: loss 3.00, gradient True
  FocalLoss: loss 1.65, gradient True
  MONAI's DiceLoss: loss 1.00, gradient True
painted everywhere, one pixel of it in the batch
  DiceLoss: loss 1.00, gradient True
  JaccardLoss: loss 1.00, gradient True
  TverskyLoss: loss 1.00, gradient True
  LovaszLoss: loss 2.99, gradient True
  FocalLoss: loss 1.65, gradient True
  MONAI's DiceLoss: loss 1.00, gradient True
wrong at each pixel, 2 of 20 classes there: DiceLoss 0.10, JaccardLoss 0.10, TverskyLoss 0.10, LovaszLoss 1.00, FocalLoss 1.16
wrong at each pixel, 10 of 20 classes there: DiceLoss 0.50, JaccardLoss 0.50, TverskyLoss 0.50, LovaszLoss 1.00, FocalLoss 1.16
wrong at each pixel, 20 of 20 classes there: DiceLoss 1.00, JaccardLoss 1.00, TverskyLoss 1.00, LovaszLoss 1.00, FocalLoss 1.16
SEEN
