#!/usr/bin/env bash
# A layer that is unfrozen during a warm-up trains at ten to fifty times the rate it was given, to the end of the run.
#
# Guess: a group that `add_param_group` adds at a rate of 1 keeps that rate, since the schedule was made without it, or
#        is held down like the rest and comes to 1 as the warm-up ends.
# Seen:  LinearLR and ConstantLR multiply the rate that they find by the step of their factor. A group that comes in at
#        its full rate is raised as often as the others, from there: to 9.2 where it was added at step 10 of 100, and to
#        50 at step 1. Chained with a decay it falls from that height. The first group, whose rate is in most logs, is
#        right throughout. Added after the warm-up the group is right, too. LambdaLR, on which the schedules of
#        transformers are built, stops with a ValueError, and a sequence with a cosine does so as the warm-up ends.
# With:  torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from torch.optim.lr_scheduler import ChainedScheduler, ConstantLR, CosineAnnealingLR, ExponentialLR, LambdaLR, LinearLR
from torch.optim.lr_scheduler import SequentialLR

schedules = {
    "LinearLR": lambda optimizer: LinearLR(optimizer, 0.01, 1.0, 100),
    "ConstantLR": lambda optimizer: ConstantLR(optimizer, 0.1, 100),
    "LinearLR, then cosine": lambda optimizer: SequentialLR(
        optimizer, [LinearLR(optimizer, 0.01, 1.0, 100), CosineAnnealingLR(optimizer, 100)], [100]
    ),
    "LinearLR with ExponentialLR": lambda optimizer: ChainedScheduler(
        [LinearLR(optimizer, 0.01, 1.0, 100), ExponentialLR(optimizer, 0.999)], optimizer
    ),
    "LambdaLR": lambda optimizer: LambdaLR(optimizer, lambda step: min(1.0, step / 100)),
}
for name, make in schedules.items():
    for added in (1, 10, 50, 101):
        head, body = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
        optimizer = torch.optim.SGD(head.parameters(), lr=1.0)
        scheduler = make(optimizer)
        rates = []
        try:
            for step in range(200):
                if step == added:
                    optimizer.add_param_group({"params": body.parameters(), "lr": 1.0})
                rates.append([group["lr"] for group in optimizer.param_groups])
                optimizer.step()
                scheduler.step()
        except ValueError:
            print(f"{name}, layer added at step {added}: ValueError")
            continue
        shown = " and ".join(" ".join(f"{rates[step][group]:.2f}" for step in (105, 150, 190)) for group in (0, 1))
        print(f"{name}, layer added at step {added}: rates at steps 105, 150, 190", shown)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
LinearLR, layer added at step 1: rates at steps 105, 150, 190 1.00 1.00 1.00 and 50.25 50.25 50.25
LinearLR, layer added at step 10: rates at steps 105, 150, 190 1.00 1.00 1.00 and 9.17 9.17 9.17
LinearLR, layer added at step 50: rates at steps 105, 150, 190 1.00 1.00 1.00 and 1.98 1.98 1.98
LinearLR, layer added at step 101: rates at steps 105, 150, 190 1.00 1.00 1.00 and 1.00 1.00 1.00
ConstantLR, layer added at step 1: rates at steps 105, 150, 190 1.00 1.00 1.00 and 10.00 10.00 10.00
ConstantLR, layer added at step 10: rates at steps 105, 150, 190 1.00 1.00 1.00 and 10.00 10.00 10.00
ConstantLR, layer added at step 50: rates at steps 105, 150, 190 1.00 1.00 1.00 and 10.00 10.00 10.00
ConstantLR, layer added at step 101: rates at steps 105, 150, 190 1.00 1.00 1.00 and 1.00 1.00 1.00
LinearLR, then cosine, layer added at step 1: ValueError
LinearLR, then cosine, layer added at step 10: ValueError
LinearLR, then cosine, layer added at step 50: ValueError
LinearLR, then cosine, layer added at step 101: rates at steps 105, 150, 190 0.99 0.50 0.02 and 0.99 0.50 0.02
LinearLR with ExponentialLR, layer added at step 1: rates at steps 105, 150, 190 0.90 0.86 0.83 and 45.29 43.29 41.59
LinearLR with ExponentialLR, layer added at step 10: rates at steps 105, 150, 190 0.90 0.86 0.83 and 8.34 7.98 7.66
LinearLR with ExponentialLR, layer added at step 50: rates at steps 105, 150, 190 0.90 0.86 0.83 and 1.87 1.79 1.72
LinearLR with ExponentialLR, layer added at step 101: rates at steps 105, 150, 190 0.90 0.86 0.83 and 1.00 0.95 0.91
LambdaLR, layer added at step 1: ValueError
LambdaLR, layer added at step 10: ValueError
LambdaLR, layer added at step 50: ValueError
LambdaLR, layer added at step 101: ValueError
SEEN
