#!/usr/bin/env bash
# A model that is always right validates at 0.5: `eval()` does not stop the augmentations of torchvision and kornia.
#
# Guess: a random flip that is a module within the model is for training alone, as dropout is: `eval()` ends it.
# Seen:  torchvision's v2 and kornia draw on in evaluation, though their changes are modules with a `training` flag. A
#        classifier of left and right behind a flip with a chance of one half has an accuracy near 0.5 in `eval()`, and
#        so it has in service. A layer of Keras in a PyTorch module does the same, while Keras' own `predict` stops it.
#        Validation is as low as training, and another number each time. v2 draws once for a whole batch, too: all 64
#        images are flipped or none, so that a batch is right as a whole or wrong as a whole.
# With:  torchvision 0.28.0, kornia 0.9.0, keras 3.15.1, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
packages="torchvision==0.28.0 kornia==0.9.0 keras==3.15.1 torch==2.13.0 numpy==2.4.6"
"$folder/env/bin/pip" install -q $packages 2>/dev/null
cd "$folder"
export KERAS_BACKEND=torch
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch

try:
    import torchvision
except RuntimeError:  # a torch without CUDA next to a torchvision with it lacks two operators, which no flip needs
    for name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
import keras
import kornia
from torchvision.transforms import v2


class Sides(torch.nn.Module):
    def __init__(self, change):
        super().__init__()
        self.change = change

    def forward(self, images):
        return self.change(images).sum(dim=(1, 2)).argmax(dim=1) // 8


torch.manual_seed(0)
keras.utils.set_random_seed(0)
labels = torch.arange(64) % 2
images = torch.zeros(64, 3, 16, 16)
images[torch.arange(64), :, :, labels * 15] = 1.0
keras_flip = keras.layers.RandomFlip("horizontal", data_format="channels_first")
whole = keras.Sequential([keras.Input((3, 16, 16)), keras_flip])
for name, change in {
    "torchvision v2": v2.RandomHorizontalFlip(p=0.5),
    "kornia": kornia.augmentation.RandomHorizontalFlip(p=0.5),
    "layer of Keras": keras_flip,
    "model of Keras, predict": lambda rows: torch.as_tensor(whole.predict(rows, verbose=0)),
}.items():
    model = Sides(change)
    for mode in ("train", "eval"):
        getattr(model, mode)()
        with torch.no_grad():
            batches = [(model(images) == labels).double().mean().item() for _ in range(200)]
        halves = sum(0 < accuracy < 1 for accuracy in batches)
        print(f"{name} | {mode} | accuracy {sum(batches) / 200:.1f} | batches right in part {halves} of 200")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
torchvision v2 | train | accuracy 0.5 | batches right in part 0 of 200
torchvision v2 | eval | accuracy 0.5 | batches right in part 0 of 200
kornia | train | accuracy 0.5 | batches right in part 200 of 200
kornia | eval | accuracy 0.5 | batches right in part 200 of 200
layer of Keras | train | accuracy 0.5 | batches right in part 200 of 200
layer of Keras | eval | accuracy 0.5 | batches right in part 200 of 200
model of Keras, predict | train | accuracy 1.0 | batches right in part 0 of 200
model of Keras, predict | eval | accuracy 1.0 | batches right in part 0 of 200
SEEN
