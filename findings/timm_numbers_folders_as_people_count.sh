#!/usr/bin/env bash
# A model trained on folders by torchvision has an accuracy of 0.17 in timm, which gives the same folders other numbers.
#
# Guess: both sort the names of the folders, so that a class has one number in `ImageFolder` and in timm's data set.
# Seen:  timm sorts as people do: 2 comes before 10, and capital letters do not count. torchvision sorts by characters:
#        10 comes before 2, and Zebra before ant. So a head that was trained with one and is validated with the other
#        is wrong about most classes, with nothing said: the counts and the names agree. Up to ten numbered classes, or
#        with names in small letters and numbers of one length, such as those of ImageNet, the two have one order.
# With:  timm 1.0.31, torchvision 0.28.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q timm==1.0.31 torchvision==0.28.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import pathlib

import torch
from PIL import Image

try:
    import torchvision
except RuntimeError:  # a torch without CUDA next to a torchvision with it lacks two operators, which no reader needs
    for name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
from timm.data import create_dataset
from torchvision.datasets import ImageFolder

sets = {
    "twelve numbers": [str(number) for number in range(12)],
    "ten numbers": [str(number) for number in range(10)],
    "animals": ["ant", "Bee", "cat", "Dog", "Zebra"],
    "small animals": ["ant", "bee", "cat", "dog", "zebra"],
}
for title, names in sets.items():
    root = pathlib.Path(title.replace(" ", "_"))
    for shade, name in enumerate(names):
        (root / name).mkdir(parents=True)
        Image.new("RGB", (4, 4), (shade, shade, shade)).save(root / name / "image.png")
    trained = ImageFolder(root)
    number_of_shade = {image.getpixel((0, 0))[0]: label for image, label in trained}
    for library, rows in {
        "torchvision": trained,
        "timm": create_dataset("", root=str(root)),
    }.items():
        right = [number_of_shade[image.getpixel((0, 0))[0]] == label for image, label in rows]
        order = sorted((label, names[image.getpixel((0, 0))[0]]) for image, label in rows)
        print(f"{title} | {library} | {' '.join(name for _, name in order)} | accuracy {sum(right) / len(right):.2f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
twelve numbers | torchvision | 0 1 10 11 2 3 4 5 6 7 8 9 | accuracy 1.00
twelve numbers | timm | 0 1 2 3 4 5 6 7 8 9 10 11 | accuracy 0.17
ten numbers | torchvision | 0 1 2 3 4 5 6 7 8 9 | accuracy 1.00
ten numbers | timm | 0 1 2 3 4 5 6 7 8 9 | accuracy 1.00
animals | torchvision | Bee Dog Zebra ant cat | accuracy 1.00
animals | timm | ant Bee cat Dog Zebra | accuracy 0.00
small animals | torchvision | ant bee cat dog zebra | accuracy 1.00
small animals | timm | ant bee cat dog zebra | accuracy 1.00
SEEN
