#!/usr/bin/env bash
# A blank output with one hot pixel has an SSIM of 0.99 in torchmetrics, where a slightly noisy one has 0.12.
#
# Guess: without a `data_range`, SSIM takes 1 for floats, or the range of each target: the score of an image is its own.
# Seen:  the range is the largest of the whole batch, of outputs and targets. Its square is what keeps flat parts from
#        counting, so that one output far too large makes all images of the batch alike: blank ones of dark images go
#        from 0.00 to 0.99, and so does mere noise. Without such pixels the score depends on the neighbours: of dark and
#        bright images the same outputs have 0.52 in batches of one and 0.83 in one batch, and in batches of two 0.52 or
#        0.81 by their order. With `data_range=1.0` it is 0.81 in each case, and near 0 for blank outputs and noise.
# With:  torchmetrics 1.9.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torchmetrics==1.9.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from torchmetrics.image import StructuralSimilarityIndexMeasure

generator = torch.Generator().manual_seed(0)
soft = torch.nn.functional.avg_pool2d(torch.rand(8, 1, 64, 64, generator=generator), 9, 1, 4)
soft = (soft - soft.min()) / (soft.max() - soft.min())
dark, bright = soft[:4] * 0.05, soft[4:]


def noisy(images):
    return images + 0.02 * torch.randn(images.shape, generator=generator)


def score(outputs, targets, size, **settings):
    metric = StructuralSimilarityIndexMeasure(**settings)
    for rows in torch.arange(len(outputs)).split(size):
        metric.update(outputs[rows], targets[rows])
    return f"{float(metric.compute()):.2f}"


blank = torch.zeros_like(dark)
hot = blank.clone()
hot[0, 0, 0, 0] = 50
wild = torch.randn(dark.shape, generator=generator)
wild[:, :, 0, 0] = 1000
for name, outputs in (
    ("a little noise", noisy(dark)),
    ("blank", blank),
    ("blank, one pixel of 50", hot),
    ("noise of 1, one pixel of 1000 in each", wild),
):
    print(f"dark images, {name}: {score(outputs, dark, 4)}, data_range 1 {score(outputs, dark, 4, data_range=1.0)}")
targets = torch.cat([dark, bright])
outputs = noisy(targets)
for order in ([0, 1, 2, 3, 4, 5, 6, 7], [0, 4, 1, 5, 2, 6, 3, 7]):
    for settings in ({}, {"data_range": 1.0}):
        scores = (score(outputs[order], targets[order], size, **settings) for size in (1, 2, 4, 8))
        print("order", *order, settings, "in batches of 1, 2, 4, 8:", *scores)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
dark images, a little noise: 0.12, data_range 1 0.71
dark images, blank: 0.00, data_range 1 0.08
dark images, blank, one pixel of 50: 0.99, data_range 1 0.08
dark images, noise of 1, one pixel of 1000 in each: 0.99, data_range 1 0.00
order 0 1 2 3 4 5 6 7 {} in batches of 1, 2, 4, 8: 0.52 0.52 0.52 0.83
order 0 1 2 3 4 5 6 7 {'data_range': 1.0} in batches of 1, 2, 4, 8: 0.81 0.81 0.81 0.81
order 0 4 1 5 2 6 3 7 {} in batches of 1, 2, 4, 8: 0.52 0.81 0.82 0.83
order 0 4 1 5 2 6 3 7 {'data_range': 1.0} in batches of 1, 2, 4, 8: 0.81 0.81 0.81 0.81
SEEN
