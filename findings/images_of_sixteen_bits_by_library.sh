#!/usr/bin/env bash
# A 16-bit image is all white for Pillow and datasets, nearly black for OpenCV, and below zero for torchvision.
#
# Guess: a reader scales 16 bits to 8 or to [0, 1], as it does with 8 bits, or keeps the numbers up to 65,535.
# Seen:  `convert("RGB")`, and `Image(mode="RGB")` of datasets by it, cut at 255: a depth or a scan of 12 bits is white
#        but for its darkest pixels. OpenCV's `imread` divides by 256, which leaves 16 of 255 shades of 12 bits.
#        torchvision's ToTensor does not scale, and makes 40,000 to -25,536: bright is darker than black. Keras and
#        scikit-image keep the numbers; torchvision's v2 alone scales by 65,535. Training learns from each of them, only
#        less, and a model that meets another reader in service meets other images.
# With:  pillow 13.0.0, datasets 5.2.0, opencv-python-headless 5.0.0.93, torchvision 0.28.0, keras 3.15.1,
#        scikit-image 0.26.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
packages="pillow==13.0.0 datasets==5.2.0 opencv-python-headless==5.0.0.93 torchvision==0.28.0 keras==3.15.1"
"$folder/env/bin/pip" install -q $packages scikit-image==0.26.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
export KERAS_BACKEND=torch
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import numpy
import torch
from PIL import Image

try:
    import torchvision
except RuntimeError:  # a torch without CUDA next to a torchvision with it lacks two operators, which no reader needs
    for name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
import cv2
import datasets
import keras
import skimage.io
from torchvision.transforms import ToTensor, v2

pixels = numpy.array([[0, 200, 1000, 4000, 30000, 40000, 65535]], dtype=numpy.uint16)
Image.fromarray(pixels).save("scan.png")
image = Image.open("scan.png")
rows = datasets.Dataset.from_dict({"image": ["scan.png"]}).cast_column("image", datasets.Image(mode="RGB"))
readings = {
    "Pillow, convert RGB": numpy.asarray(image.convert("RGB"))[0, :, 0],
    "datasets, mode RGB": numpy.asarray(rows[0]["image"])[0, :, 0],
    "OpenCV, imread": cv2.imread("scan.png")[0, :, 0],
    "torchvision, ToTensor": ToTensor()(image)[0, 0].numpy(),
    "torchvision v2, scaled": v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])(image)[0, 0].numpy(),
    "Keras, load_img": keras.utils.img_to_array(keras.utils.load_img("scan.png", color_mode="grayscale"))[0, :, 0],
    "scikit-image, imread": skimage.io.imread("scan.png")[0],
}
print("in the file |", *pixels[0])
for name, values in readings.items():
    print(name, "|", *[f"{float(value):.4g}" if value < 1 and value > 0 else int(value) for value in values])
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
in the file | 0 200 1000 4000 30000 40000 65535
Pillow, convert RGB | 0 200 255 255 255 255 255
datasets, mode RGB | 0 200 255 255 255 255 255
OpenCV, imread | 0 0 3 15 117 156 255
torchvision, ToTensor | 0 200 1000 4000 30000 -25536 -1
torchvision v2, scaled | 0 0.003052 0.01526 0.06104 0.4578 0.6104 1
Keras, load_img | 0 200 1000 4000 30000 40000 65535
scikit-image, imread | 0 200 1000 4000 30000 40000 65535
SEEN
