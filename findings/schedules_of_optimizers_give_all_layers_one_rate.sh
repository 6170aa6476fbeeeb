#!/usr/bin/env bash
# A pretrained layer with a rate of 0.00001 trains at 0.01 like the new head, once a schedule is given one highest rate.
#
# Guess: rates by parameter group are there for fine-tuning: a schedule multiplies each group's own rate, as LambdaLR
#        does.
# Seen:  those that are given a highest rate as a number forget the groups: OneCycleLR and CyclicLR of PyTorch, and
#        three schedules of pytorch-optimizer. Both groups have one rate in each step, a thousand times that of the
#        first and more than the highest it was to have. Schedules without such an argument keep the ratio of 1,000.
#        PyTorch's two take a list of highest rates as well.
# With:  pytorch_optimizer 4.1.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q pytorch_optimizer==4.1.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import pytorch_optimizer
import torch
from torch.optim import lr_scheduler

for library, name, options in (
    (lr_scheduler, "LambdaLR", {"lr_lambda": lambda step: 1 - step / 20}),
    (lr_scheduler, "CosineAnnealingLR", {"T_max": 10}),
    (lr_scheduler, "OneCycleLR", {"max_lr": 0.01, "total_steps": 12}),
    (lr_scheduler, "CyclicLR", {"base_lr": 0.001, "max_lr": 0.01, "step_size_up": 5}),
    (pytorch_optimizer, "CosineScheduler", {"t_max": 10, "max_lr": 0.01}),
    (pytorch_optimizer, "LinearScheduler", {"t_max": 10, "max_lr": 0.01}),
    (pytorch_optimizer, "CosineAnnealingWarmupRestarts", {"first_cycle_steps": 10, "max_lr": 0.01, "min_lr": 0.0}),
):
    weights = [torch.nn.Parameter(torch.zeros(1)) for _ in range(2)]
    groups = [{"params": weights[0], "lr": 0.00001}, {"params": weights[1], "lr": 0.01}]
    optimizer = torch.optim.SGD(groups, momentum=0.9)
    scheduler = getattr(library, name)(optimizer, **options)
    shown = []
    for step in range(1, 11):
        optimizer.step()
        scheduler.step()
        if step in (1, 5, 10):
            shown.append(f"{step} steps " + " ".join(f"{group['lr']:.6f}" for group in optimizer.param_groups))
    print(library.__name__.split(".")[0], f"{name}: rates of both groups after", ", ".join(shown))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
torch LambdaLR: rates of both groups after 1 steps 0.000010 0.009500, 5 steps 0.000008 0.007500, 10 steps 0.000005 0.005000
torch CosineAnnealingLR: rates of both groups after 1 steps 0.000010 0.009755, 5 steps 0.000005 0.005000, 10 steps 0.000000 0.000000
torch OneCycleLR: rates of both groups after 1 steps 0.003498 0.003498, 5 steps 0.008117 0.008117, 10 steps 0.000346 0.000346
torch CyclicLR: rates of both groups after 1 steps 0.002800 0.002800, 5 steps 0.010000 0.010000, 10 steps 0.001000 0.001000
pytorch_optimizer CosineScheduler: rates of both groups after 1 steps 0.010000 0.010000, 5 steps 0.006545 0.006545, 10 steps 0.000245 0.000245
pytorch_optimizer LinearScheduler: rates of both groups after 1 steps 0.010000 0.010000, 5 steps 0.006000 0.006000, 10 steps 0.001000 0.001000
pytorch_optimizer CosineAnnealingWarmupRestarts: rates of both groups after 1 steps 0.009755 0.009755, 5 steps 0.005000 0.005000, 10 steps 0.009000 0.009000
SEEN
