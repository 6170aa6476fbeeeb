#!/usr/bin/env bash
# SGD without momentum moves eight times as far as its rates say: OneCycleLR gives it a momentum of 0.95.
#
# Guess: a scheduler of the learning rate leaves the momentum as it was set: at 0, or at the `betas` of Adam.
# Seen:  `cycle_momentum` is on. OneCycleLR overwrites momentum 0 with 0.95, and with 0.85 at the highest rate. CyclicLR
#        sets 0.9. The first beta of AdamW, set to 0.8, is replaced alike. The logged rates are right, and the way that
#        weights go at a constant gradient is eight times as long.
# With:  torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
from functools import partial

import torch
from torch.optim.lr_scheduler import ConstantLR, CyclicLR, OneCycleLR

plain = partial(torch.optim.SGD, lr=0.1)
adam = partial(torch.optim.AdamW, lr=0.1, betas=(0.8, 0.999))
cycle = partial(OneCycleLR, max_lr=0.1, total_steps=100)
for name, optimizer, scheduler in (
    ("SGD, no schedule", plain, partial(ConstantLR, factor=1)),
    ("SGD, OneCycleLR", plain, cycle),
    ("SGD, OneCycleLR, cycle_momentum=False", plain, partial(cycle, cycle_momentum=False)),
    ("SGD, CyclicLR", plain, partial(CyclicLR, base_lr=0, max_lr=0.1, step_size_up=50)),
    ("AdamW with a beta of 0.8, OneCycleLR", adam, cycle),
):
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = optimizer([weight])
    scheduler = scheduler(optimizer)
    momenta, rates = [], []
    for step in range(100):
        weight.grad, (group,) = torch.ones(1), optimizer.param_groups
        momenta.append(float(group["betas"][0] if "betas" in group else group["momentum"]))
        rates.append(group["lr"])
        optimizer.step()
        if step < 99:
            scheduler.step()
    print(name, "| momentum", round(min(momenta), 2), "to", round(max(momenta), 2), end=" | ")
    print("sum of rates", round(sum(rates), 1), "moved", round(-weight.item(), 1))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
SGD, no schedule | momentum 0.0 to 0.0 | sum of rates 10.0 moved 10.0
SGD, OneCycleLR | momentum 0.85 to 0.95 | sum of rates 5.0 moved 39.8
SGD, OneCycleLR, cycle_momentum=False | momentum 0.0 to 0.0 | sum of rates 5.0 moved 5.0
SGD, CyclicLR | momentum 0.8 to 0.9 | sum of rates 5.0 moved 30.1
AdamW with a beta of 0.8, OneCycleLR | momentum 0.85 to 0.95 | sum of rates 5.0 moved 4.7
SEEN
