#!/usr/bin/env bash
# A run of twenty epochs trains at a fifth of its rate from the first one: `SWALR`, which waits for epoch 15, was made.
#
# Guess: a scheduler changes no rate before its own `step` is called. `anneal_epochs=0` means that SWALR, once it is
#        stepped, goes to `swa_lr` at once.
# Seen:  to make a scheduler makes a first step, and with `anneal_epochs=0` that step is the whole way. The usual recipe
#        makes both schedulers ahead of the loop, so that epoch 0 has a rate of 0.02 rather than 0.1. A scheduler that
#        goes on from the rate it finds (cosine, step, exponential) stays that far below. LambdaLR alone puts it right
#        in the next epoch. With `anneal_epochs=1` all is as one expects.
# With:  torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, ExponentialLR, LambdaLR, StepLR
from torch.optim.swa_utils import SWALR

for name, make in {
    "CosineAnnealingLR": lambda optimizer: CosineAnnealingLR(optimizer, 20),
    "StepLR": lambda optimizer: StepLR(optimizer, 8, 0.5),
    "ExponentialLR": lambda optimizer: ExponentialLR(optimizer, 0.9),
    "LambdaLR": lambda optimizer: LambdaLR(optimizer, lambda epoch: 0.9**epoch),
}.items():
    for anneal in (1, 0):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
        scheduler, averaging = make(optimizer), SWALR(optimizer, swa_lr=0.02, anneal_epochs=anneal)
        rates = []
        for epoch in range(20):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            (averaging if epoch >= 15 else scheduler).step()
        shown = " ".join(f"{epoch}: {rates[epoch]:.4f}" for epoch in (0, 1, 5, 10, 15, 19))
        print(f"{name}, anneal_epochs={anneal} | rate of epoch {shown}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
CosineAnnealingLR, anneal_epochs=1 | rate of epoch 0: 0.1000 1: 0.0994 5: 0.0854 10: 0.0500 15: 0.0146 19: 0.0200
CosineAnnealingLR, anneal_epochs=0 | rate of epoch 0: 0.0200 1: 0.0199 5: 0.0171 10: 0.0100 15: 0.0029 19: 0.0200
StepLR, anneal_epochs=1 | rate of epoch 0: 0.1000 1: 0.1000 5: 0.1000 10: 0.0500 15: 0.0500 19: 0.0200
StepLR, anneal_epochs=0 | rate of epoch 0: 0.0200 1: 0.0200 5: 0.0200 10: 0.0100 15: 0.0100 19: 0.0200
ExponentialLR, anneal_epochs=1 | rate of epoch 0: 0.1000 1: 0.0900 5: 0.0590 10: 0.0349 15: 0.0206 19: 0.0200
ExponentialLR, anneal_epochs=0 | rate of epoch 0: 0.0200 1: 0.0180 5: 0.0118 10: 0.0070 15: 0.0041 19: 0.0200
LambdaLR, anneal_epochs=1 | rate of epoch 0: 0.1000 1: 0.0900 5: 0.0590 10: 0.0349 15: 0.0206 19: 0.0200
LambdaLR, anneal_epochs=0 | rate of epoch 0: 0.0200 1: 0.0900 5: 0.0590 10: 0.0349 15: 0.0206 19: 0.0200
SEEN
