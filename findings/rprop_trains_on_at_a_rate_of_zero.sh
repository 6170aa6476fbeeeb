#!/usr/bin/env bash
# A learning rate of 0 does not stop PyTorch's Rprop, and no schedule slows it; ASGD follows its schedule a step late.
#
# Guess: whatever an optimizer makes of gradients, the rate in its group scales each step: at 0 no weight moves.
# Seen:  Rprop reads the rate once, in its first step, as the length that each weight starts with. Later lengths grow
#        and shrink by signs alone. A schedule changes the rate that is logged and nothing else, and a group with rate 0
#        goes on. A warm-up that starts at 0 stands still to its end, since factors of 1.2 multiply nothing. ASGD steps
#        by the rate of the step before: the first step of a new rate is of the old one.
# With:  torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from torch.optim.lr_scheduler import LambdaLR

for title, rate in (
    ("0.01", lambda step: 0.01),
    ("0.01, and 0 from step 5 on", lambda step: 0.01 * (step < 5)),
    ("a cosine that ends near 0", lambda step: 0.005 + 0.005 * torch.tensor(step / 8 * torch.pi).cos().item()),
    ("a warm-up from 0 to 0.01", lambda step: min(step, 4) / 400),
):
    print(f"rate of {title}:", *(f"{rate(step):.4f}" for step in range(8)))
    for kind in ("SGD", "ASGD", "Rprop"):
        weight = torch.nn.Parameter(torch.zeros(1))
        optimizer = getattr(torch.optim, kind)([weight], lr=1.0)
        scheduler = LambdaLR(optimizer, rate)
        lengths = []
        for _ in range(8):
            before, weight.grad = weight.item(), torch.ones(1)
            optimizer.step()
            scheduler.step()
            lengths.append(before - weight.item())
        print(f"    {kind} moves", *(f"{length:.4f}" for length in lengths))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
rate of 0.01: 0.0100 0.0100 0.0100 0.0100 0.0100 0.0100 0.0100 0.0100
    SGD moves 0.0100 0.0100 0.0100 0.0100 0.0100 0.0100 0.0100 0.0100
    ASGD moves 0.0100 0.0100 0.0100 0.0100 0.0100 0.0100 0.0100 0.0100
    Rprop moves 0.0100 0.0120 0.0144 0.0173 0.0207 0.0249 0.0299 0.0358
rate of 0.01, and 0 from step 5 on: 0.0100 0.0100 0.0100 0.0100 0.0100 0.0000 0.0000 0.0000
    SGD moves 0.0100 0.0100 0.0100 0.0100 0.0100 0.0000 0.0000 0.0000
    ASGD moves 0.0100 0.0100 0.0100 0.0100 0.0100 0.0100 0.0000 0.0000
    Rprop moves 0.0100 0.0120 0.0144 0.0173 0.0207 0.0249 0.0299 0.0358
rate of a cosine that ends near 0: 0.0100 0.0096 0.0085 0.0069 0.0050 0.0031 0.0015 0.0004
    SGD moves 0.0100 0.0096 0.0085 0.0069 0.0050 0.0031 0.0015 0.0004
    ASGD moves 0.0100 0.0100 0.0096 0.0085 0.0069 0.0050 0.0031 0.0015
    Rprop moves 0.0100 0.0120 0.0144 0.0173 0.0207 0.0249 0.0299 0.0358
rate of a warm-up from 0 to 0.01: 0.0000 0.0025 0.0050 0.0075 0.0100 0.0100 0.0100 0.0100
    SGD moves 0.0000 0.0025 0.0050 0.0075 0.0100 0.0100 0.0100 0.0100
    ASGD moves 0.0000 0.0000 0.0025 0.0050 0.0075 0.0100 0.0100 0.0100
    Rprop moves 0.0000 0.0000 0.0000 0.0000 0.0000 0.0000 0.0000 0.0000
SEEN
