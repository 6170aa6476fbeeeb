#!/usr/bin/env bash
# skorch's StepLR falls to a hundredth where it is to fall to a tenth, once `partial_fit` is called epoch by epoch.
#
# Guess: ten calls of `partial_fit` for one epoch each have the rates of one call for ten epochs; or the schedule, which
#        each call makes anew, begins anew and never falls.
# Seen:  each call makes the scheduler anew and replays the epochs so far on the optimizer, whose rate has fallen
#        already. At an epoch where StepLR or MultiStepLR falls, the replay takes its factor once more: rates are 1,
#        0.01 and 0.0001 in place of 1, 0.1 and 0.01. It depends on where the calls end: five calls give 0.001 in place
#        of 0.01, two none of it. ExponentialLR, the cosine, LinearLR and LambdaLR come out as one expects.
# With:  skorch 1.4.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q skorch==1.4.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import numpy
import torch
from skorch import NeuralNetRegressor
from skorch.callbacks import LRScheduler
from torch.optim import lr_scheduler

rows = numpy.ones((4, 1), "float32")
for policy, options in (
    ("StepLR", {"step_size": 3, "gamma": 0.1}),
    ("MultiStepLR", {"milestones": [3, 6], "gamma": 0.1}),
    ("ExponentialLR", {"gamma": 0.8}),
    ("CosineAnnealingLR", {"T_max": 10}),
    ("LinearLR", {"start_factor": 1.0, "end_factor": 0.1, "total_iters": 10}),
    ("LambdaLR", {"lr_lambda": lambda epoch: 0.8**epoch}),
):
    for calls in (1, 2, 5, 10):
        net = NeuralNetRegressor(
            torch.nn.Linear(1, 1),
            lr=1.0,
            max_epochs=10 // calls,
            train_split=None,
            verbose=0,
            callbacks=[("schedule", LRScheduler(policy=getattr(lr_scheduler, policy), **options))],
        )
        for _ in range(calls):
            net.partial_fit(rows, rows)
        print(f"{policy}, {calls} calls for ten epochs:", *(f"{rate:.2g}" for rate in net.history[:, "event_lr"]))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
StepLR, 1 calls for ten epochs: 1 1 1 0.1 0.1 0.1 0.01 0.01 0.01 0.001
StepLR, 2 calls for ten epochs: 1 1 1 0.1 0.1 0.1 0.01 0.01 0.01 0.001
StepLR, 5 calls for ten epochs: 1 1 1 0.1 0.1 0.1 0.001 0.001 0.001 0.0001
StepLR, 10 calls for ten epochs: 1 1 1 0.01 0.01 0.01 0.0001 0.0001 0.0001 1e-06
MultiStepLR, 1 calls for ten epochs: 1 1 1 0.1 0.1 0.1 0.01 0.01 0.01 0.01
MultiStepLR, 2 calls for ten epochs: 1 1 1 0.1 0.1 0.1 0.01 0.01 0.01 0.01
MultiStepLR, 5 calls for ten epochs: 1 1 1 0.1 0.1 0.1 0.001 0.001 0.001 0.001
MultiStepLR, 10 calls for ten epochs: 1 1 1 0.01 0.01 0.01 0.0001 0.0001 0.0001 0.0001
ExponentialLR, 1 calls for ten epochs: 1 0.8 0.64 0.51 0.41 0.33 0.26 0.21 0.17 0.13
ExponentialLR, 2 calls for ten epochs: 1 0.8 0.64 0.51 0.41 0.33 0.26 0.21 0.17 0.13
ExponentialLR, 5 calls for ten epochs: 1 0.8 0.64 0.51 0.41 0.33 0.26 0.21 0.17 0.13
ExponentialLR, 10 calls for ten epochs: 1 0.8 0.64 0.51 0.41 0.33 0.26 0.21 0.17 0.13
CosineAnnealingLR, 1 calls for ten epochs: 1 0.98 0.9 0.79 0.65 0.5 0.35 0.21 0.095 0.024
CosineAnnealingLR, 2 calls for ten epochs: 1 0.98 0.9 0.79 0.65 0.5 0.35 0.21 0.095 0.024
CosineAnnealingLR, 5 calls for ten epochs: 1 0.98 0.9 0.79 0.65 0.5 0.35 0.21 0.095 0.024
CosineAnnealingLR, 10 calls for ten epochs: 1 0.98 0.9 0.79 0.65 0.5 0.35 0.21 0.095 0.024
LinearLR, 1 calls for ten epochs: 1 0.91 0.82 0.73 0.64 0.55 0.46 0.37 0.28 0.19
LinearLR, 2 calls for ten epochs: 1 0.91 0.82 0.73 0.64 0.55 0.46 0.37 0.28 0.19
LinearLR, 5 calls for ten epochs: 1 0.91 0.82 0.73 0.64 0.55 0.46 0.37 0.28 0.19
LinearLR, 10 calls for ten epochs: 1 0.91 0.82 0.73 0.64 0.55 0.46 0.37 0.28 0.19
LambdaLR, 1 calls for ten epochs: 1 0.8 0.64 0.51 0.41 0.33 0.26 0.21 0.17 0.13
LambdaLR, 2 calls for ten epochs: 1 0.8 0.64 0.51 0.41 0.33 0.26 0.21 0.17 0.13
LambdaLR, 5 calls for ten epochs: 1 0.8 0.64 0.51 0.41 0.33 0.26 0.21 0.17 0.13
LambdaLR, 10 calls for ten epochs: 1 0.8 0.64 0.51 0.41 0.33 0.26 0.21 0.17 0.13
SEEN
