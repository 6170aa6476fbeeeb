#!/usr/bin/env bash
# A finished run is resumed for twice its length: each scheduler goes on in another way, and some raise the rate again.
#
# Guess: the new length counts, as the script states it: the learning rate comes down from half of its peak.
# Seen:  PyTorch's states hold the old length, and win. Its cosine climbs back to the peak and ends there; its linear
#        decay stays at 0, so that nothing is learnt. The schedules of transformers hold no length: from 0 the rate
#        jumps to .42 of the peak.
# With:  torch 2.13.0, transformers 5.24.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 transformers==5.24.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from transformers import get_cosine_schedule_with_warmup


def warmed(optimizer, steps):
    parts = [LinearLR(optimizer, 0.1, 1.0, 2), CosineAnnealingLR(optimizer, steps - 2)]
    return SequentialLR(optimizer, parts, [2])


def run(make, steps, resumed=None):
    """Return the states at the end, and the rates by step."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler, rates = make(optimizer, steps), []
    for part, state in zip((optimizer, scheduler), resumed or ()):
        part.load_state_dict(state)
    while scheduler.last_epoch < steps:
        optimizer.step()
        scheduler.step()
        rates.append(round(optimizer.param_groups[0]["lr"], 2))
    return (optimizer.state_dict(), scheduler.state_dict()), rates


for name, make in {
    "torch cosine": CosineAnnealingLR,
    "torch warm-up and cosine": warmed,
    "torch linear": lambda optimizer, steps: LinearLR(optimizer, 1.0, 0.0, steps),
    "transformers cosine": lambda optimizer, steps: get_cosine_schedule_with_warmup(optimizer, 0, steps),
}.items():
    states, _ = run(make, 10)
    print(name, *run(make, 20, states)[1])
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
torch cosine 0.02 0.1 0.21 0.35 0.5 0.65 0.79 0.9 0.98 1.0
torch warm-up and cosine 0.04 0.15 0.31 0.5 0.69 0.85 0.96 1.0 0.96 0.85
torch linear 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0
transformers cosine 0.42 0.35 0.27 0.21 0.15 0.1 0.05 0.02 0.01 0.0
SEEN
