#!/usr/bin/env bash
# The cross entropy of segmentation_models_pytorch is a tenth of PyTorch's where nine tenths of the pixels are ignored.
#
# Guess: `ignore_index` leaves pixels out of the loss: the mean is over those that are left, as in PyTorch's cross
#        entropy.
# Seen:  `SoftCrossEntropyLoss` makes their losses 0 and takes the mean over all pixels. The same model has a loss of
#        1.39 without padding and of 0.14 with 90 percent of it, and its gradient is as much smaller. Batches with more
#        padding train less, and losses of two data sets compare only where both ignore one share. Smoothing changes
#        nothing of it. `FocalLoss` of the same package takes the mean over the pixels that are left.
# With:  segmentation-models-pytorch 0.6.0, torchvision 0.28.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
packages="segmentation-models-pytorch==0.6.0 torchvision==0.28.0 torch==2.13.0 numpy==2.4.6"
"$folder/env/bin/pip" install -q $packages 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch

try:
    import torchvision
except RuntimeError:  # a torch without CUDA next to a torchvision with it lacks two operators, which no loss needs
    for name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
from segmentation_models_pytorch.losses import FocalLoss, SoftCrossEntropyLoss

losses = {
    "torch": lambda: torch.nn.CrossEntropyLoss(ignore_index=255),
    "smp": lambda: SoftCrossEntropyLoss(ignore_index=255, smooth_factor=0.0),
    "torch smoothed": lambda: torch.nn.CrossEntropyLoss(ignore_index=255, label_smoothing=0.1),
    "smp smoothed": lambda: SoftCrossEntropyLoss(ignore_index=255, smooth_factor=0.1),
    "smp focal": lambda: FocalLoss("multiclass", ignore_index=255),
}
for ignored in (0, 5, 9):
    labels = torch.zeros(2, 10, 10, dtype=int)
    labels[:, :ignored] = 255
    print(f"{ignored * 10} percent ignored", end="")
    for name, make in losses.items():
        outputs = torch.zeros(2, 4, 10, 10, requires_grad=True)
        loss = make()(outputs, labels)
        loss.backward()
        print(f" | {name} {loss.item():.3f}, gradient {outputs.grad.abs().sum().item():.2f}", end="")
    print()
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
0 percent ignored | torch 1.386, gradient 1.50 | smp 1.386, gradient 1.50 | torch smoothed 1.386, gradient 1.35 | smp smoothed 1.386, gradient 1.35 | smp focal 0.173, gradient 0.30
50 percent ignored | torch 1.386, gradient 1.50 | smp 0.693, gradient 0.75 | torch smoothed 1.386, gradient 1.35 | smp smoothed 0.693, gradient 0.67 | smp focal 0.173, gradient 0.30
90 percent ignored | torch 1.386, gradient 1.50 | smp 0.139, gradient 0.15 | torch smoothed 1.386, gradient 1.35 | smp smoothed 0.139, gradient 0.13 | smp focal 0.173, gradient 0.30
SEEN
