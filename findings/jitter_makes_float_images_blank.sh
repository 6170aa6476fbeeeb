#!/usr/bin/env bash
# A change of brightness by a fifth makes an image blank, in kornia and Albumentations, if its floats go up to 255.
#
# Guess: floats from 0 to 255, such as `image.astype("float32")`, are brightened as whole numbers are, or refused.
# Seen:  both libraries hold 1 for the brightest float, and cut at it without a word: all pixels have one value. Changes
#        of contrast do the same, and noise in Albumentations; flips and kornia's noise do not cut. A change with a
#        chance of one half blanks half of the images, so that a look at one of them may show nothing.
# With:  kornia 0.9.0, albumentations 2.0.8, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q kornia==0.9.0 albumentations==2.0.8 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import os

os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"
import albumentations
import kornia.augmentation
import numpy
import torch

torch.manual_seed(0)
image = numpy.random.default_rng(0).integers(2, 250, (32, 32, 3)).astype("float32")


def show(name, found):
    """Print the range of an image, and how much of it is white."""
    print(f"{name} | {found.min():.1f} to {found.max():.1f}, of one value {(found == found.max()).mean():.0%}")


for name, change in {
    "flip": kornia.augmentation.RandomHorizontalFlip(p=1),
    "noise": kornia.augmentation.RandomGaussianNoise(p=1),
    "brightness": kornia.augmentation.RandomBrightness((0.8, 1.2), p=1),
    "contrast": kornia.augmentation.RandomContrast((0.8, 1.2), p=1),
    "jiggle": kornia.augmentation.ColorJiggle(0.2, 0.2, 0.2, 0.02, p=1),
}.items():
    for kind, scale in (("to 255", 1), ("to 1", 255)):
        show(f"kornia {name}, floats {kind}", change(torch.tensor(image / scale).permute(2, 0, 1)[None]).numpy())
for name, change in {
    "flip": albumentations.HorizontalFlip(p=1),
    "brightness": albumentations.RandomBrightnessContrast(p=1),
    "noise": albumentations.GaussNoise(p=1),
}.items():
    change = albumentations.Compose([change], seed=0)
    for kind, array in (("floats to 255", image), ("floats to 1", image / 255), ("uint8", image.astype("uint8"))):
        show(f"Albumentations {name}, {kind}", change(image=array)["image"])
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
kornia flip, floats to 255 | 2.0 to 249.0, of one value 1%
kornia flip, floats to 1 | 0.0 to 1.0, of one value 1%
kornia noise, floats to 255 | 0.2 to 250.4, of one value 0%
kornia noise, floats to 1 | -3.3 to 4.3, of one value 0%
kornia brightness, floats to 255 | 0.9 to 0.9, of one value 100%
kornia brightness, floats to 1 | 0.1 to 1.0, of one value 10%
kornia contrast, floats to 255 | 1.0 to 1.0, of one value 100%
kornia contrast, floats to 1 | 0.0 to 1.0, of one value 9%
kornia jiggle, floats to 255 | 0.8 to 0.8, of one value 100%
kornia jiggle, floats to 1 | 0.0 to 1.0, of one value 1%
Albumentations flip, floats to 255 | 2.0 to 249.0, of one value 1%
Albumentations flip, floats to 1 | 0.0 to 1.0, of one value 1%
Albumentations flip, uint8 | 2.0 to 249.0, of one value 1%
Albumentations brightness, floats to 255 | 1.0 to 1.0, of one value 100%
Albumentations brightness, floats to 1 | 0.0 to 0.8, of one value 1%
Albumentations brightness, uint8 | 0.0 to 240.0, of one value 1%
Albumentations noise, floats to 255 | 0.7 to 1.0, of one value 100%
Albumentations noise, floats to 1 | 0.0 to 1.0, of one value 11%
Albumentations noise, uint8 | 0.0 to 255.0, of one value 13%
SEEN
