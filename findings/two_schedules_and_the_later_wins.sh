#!/usr/bin/env bash
# A decay to 0.35 in ten epochs leaves 1.0 or 0.9 of the rate, where a second schedule is made for the same optimizer.
#
# Guess: PyTorch's schedules can be stepped back to back, as its guide has it, and their factors multiply.
# Seen:  those that go on from the rate they find do multiply: cosine, polynomial, linear, step, constant. LambdaLR,
#        OneCycleLR, CyclicLR and CosineAnnealingWarmRestarts set the rate anew from the first one at each step. What is
#        stepped before them is lost whole, and of what is stepped after them a single factor counts. Most schedules of
#        transformers are a LambdaLR: next to them a decay by plateau lasts one step, too. Nothing warns.
# With:  torch 2.13.0, transformers 5.24.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 transformers==5.24.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from torch.optim import lr_scheduler
from torch.optim.lr_scheduler import ExponentialLR, ReduceLROnPlateau
from transformers import get_constant_schedule_with_warmup


def start(*makers):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0, momentum=0.9)
    return optimizer, [make(optimizer) for make in makers]


def rate(*makers):
    """Return the rate after ten epochs."""
    optimizer, schedulers = start(*makers)
    for _ in range(10):
        optimizer.step()
        for scheduler in schedulers:
            scheduler.step()
    return optimizer.param_groups[0]["lr"]


def decay(optimizer):
    return ExponentialLR(optimizer, 0.9)


for name, *options in (
    ("CosineAnnealingLR", 20),
    ("PolynomialLR", 20),
    ("LinearLR", 0.5, 1.0, 5),
    ("StepLR", 8, 0.5),
    ("LambdaLR", lambda epoch: 1.0),
    ("CosineAnnealingWarmRestarts", 20),
    ("OneCycleLR", 1.0, 30),
    ("CyclicLR", 0.5, 1.0, 20),
):

    def other(optimizer):
        return getattr(lr_scheduler, name)(optimizer, *options)

    alone = rate(other)
    first, last = rate(decay, other), rate(other, decay)
    print(f"{name}: alone {alone:.2f}, product {alone * rate(decay):.2f}", end=" | ")
    print(f"decay stepped first {first:.2f}, decay stepped last {last:.2f}")

optimizer, (plateau, warmed) = start(
    lambda optimizer: ReduceLROnPlateau(optimizer, factor=0.1, patience=2),
    lambda optimizer: get_constant_schedule_with_warmup(optimizer, 3),
)
rates = []
for epoch in range(8):
    for _ in range(4):
        optimizer.step()
        warmed.step()
    plateau.step(1.0)
    rates.append(f"{optimizer.param_groups[0]['lr']:.1f}")
    optimizer.step()
    warmed.step()
    rates.append(f"{optimizer.param_groups[0]['lr']:.1f}")
print("a flat loss, ReduceLROnPlateau by epoch, a warm-up by step: rates at an epoch's end and one step on")
print(*rates)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
CosineAnnealingLR: alone 0.50, product 0.17 | decay stepped first 0.17, decay stepped last 0.17
PolynomialLR: alone 0.50, product 0.17 | decay stepped first 0.17, decay stepped last 0.17
LinearLR: alone 1.00, product 0.35 | decay stepped first 0.35, decay stepped last 0.35
StepLR: alone 0.50, product 0.17 | decay stepped first 0.17, decay stepped last 0.17
LambdaLR: alone 1.00, product 0.35 | decay stepped first 1.00, decay stepped last 0.90
CosineAnnealingWarmRestarts: alone 0.50, product 0.17 | decay stepped first 0.50, decay stepped last 0.45
OneCycleLR: alone 0.98, product 0.34 | decay stepped first 0.98, decay stepped last 0.88
CyclicLR: alone 0.75, product 0.26 | decay stepped first 0.75, decay stepped last 0.68
a flat loss, ReduceLROnPlateau by epoch, a warm-up by step: rates at an epoch's end and one step on
1.0 1.0 1.0 1.0 1.0 1.0 0.1 1.0 1.0 1.0 1.0 1.0 0.1 1.0 1.0 1.0
SEEN
