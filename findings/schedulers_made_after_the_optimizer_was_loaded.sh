#!/usr/bin/env bash
# A resumed run goes on with a tenth of its learning rate where the scheduler is made after the optimizer was loaded.
#
# Guess: both states are loaded before the first step, so the order of the lines that make the parts does not matter.
# Seen:  making a scheduler sets the optimizer's rate for step 0, and `load_state_dict` of the scheduler does not set it
#        again. Schedulers that go on from the rate they find never get over it: a linear warm-up, alone, in a sequence
#        or in a chain, leaves the rest of the run at a tenth. Others have one step at the rate of step 0.
# With:  torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import copy

import torch
from torch.optim import lr_scheduler as schedules


def optimizer():
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)


def rates(optimizer, scheduler, steps):
    seen = []
    for _ in range(steps):
        seen.append(round(optimizer.param_groups[0]["lr"], 3))
        optimizer.step()
        scheduler.step()
    return seen


def in_sequence(optimizer):
    parts = [schedules.LinearLR(optimizer, 0.1, 1.0, 2), schedules.CosineAnnealingLR(optimizer, 8)]
    return schedules.SequentialLR(optimizer, parts, [2])


def chained(optimizer):
    parts = [schedules.LinearLR(optimizer, 0.1, 1.0, 2), schedules.ExponentialLR(optimizer, 0.9)]
    return schedules.ChainedScheduler(parts)


for name, make in {
    "cosine": lambda optimizer: schedules.CosineAnnealingLR(optimizer, 10),
    "lambda": lambda optimizer: schedules.LambdaLR(optimizer, lambda step: 1 - step / 10),
    "one cycle": lambda optimizer: schedules.OneCycleLR(optimizer, 1.0, total_steps=12),
    "warm-up": lambda optimizer: schedules.LinearLR(optimizer, 0.1, 1.0, 2),
    "warm-up, then cosine": in_sequence,
    "warm-up times decay": chained,
}.items():
    unbroken = optimizer()
    scheduler = make(unbroken)
    rates(unbroken, scheduler, 6)
    first, second = copy.deepcopy((unbroken.state_dict(), scheduler.state_dict()))
    after, before = optimizer(), optimizer()
    after.load_state_dict(first)
    made_after = make(after)
    made_before = make(before)
    before.load_state_dict(first)
    for scheduler_made in (made_after, made_before):
        scheduler_made.load_state_dict(second)
    found = {"unbroken": rates(unbroken, scheduler, 4), "made after": rates(after, made_after, 4)}
    print(name, found, "made before is unbroken", rates(before, made_before, 4) == found["unbroken"])
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
cosine {'unbroken': [0.345, 0.206, 0.095, 0.024], 'made after': [0.345, 0.206, 0.095, 0.024]} made before is unbroken True
lambda {'unbroken': [0.4, 0.3, 0.2, 0.1], 'made after': [1.0, 0.3, 0.2, 0.1]} made before is unbroken True
one cycle {'unbroken': [0.647, 0.463, 0.283, 0.133], 'made after': [0.04, 0.463, 0.283, 0.133]} made before is unbroken True
warm-up {'unbroken': [1.0, 1.0, 1.0, 1.0], 'made after': [0.1, 0.1, 0.1, 0.1]} made before is unbroken True
warm-up, then cosine {'unbroken': [0.5, 0.309, 0.146, 0.038], 'made after': [0.1, 0.062, 0.029, 0.008]} made before is unbroken True
warm-up times decay {'unbroken': [0.531, 0.478, 0.43, 0.387], 'made after': [0.053, 0.048, 0.043, 0.039]} made before is unbroken True
SEEN
