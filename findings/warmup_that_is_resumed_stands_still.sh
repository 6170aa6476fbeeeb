#!/usr/bin/env bash
# A run resumed with warmup-scheduler keeps one rate for ever: 0.93 to its end, where the unbroken run falls to 0.21.
#
# Guess: `state_dict` of the scheduler and of the optimizer, saved and loaded, give the rates of an unbroken run.
# Seen:  the state of `GradualWarmupScheduler` holds the scheduler that follows the warm-up whole, with an optimizer of
#        its own. Once loaded, it lowers the rate of that optimizer, which nobody uses; the real rate stays where it
#        was. A run that is resumed within the warm-up climbs to 1.0, falls to 0.615 at once and stays there.
#        `get_last_lr` stops at the end of the warm-up, in the unbroken run as well, so that a log by it shows one rate.
#        Before a `ReduceLROnPlateau`, a multiplier of 1 gives no warm-up at all.
# With:  warmup-scheduler 0.3, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q warmup-scheduler==0.3 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import io

import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, ReduceLROnPlateau
from warmup_scheduler import GradualWarmupScheduler


def parts(make):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    return optimizer, GradualWarmupScheduler(optimizer, 1.0, 5, make(optimizer))


def run(optimizer, scheduler, steps, *metrics):
    """Return the rates of the optimizer, and those that the scheduler names."""
    rates, shown = [], []
    for _ in range(steps):
        rates.append(round(optimizer.param_groups[0]["lr"], 3))
        shown.append(None if metrics else round(scheduler.get_last_lr()[0], 3))
        optimizer.step()
        scheduler.step(*metrics)
    return rates, shown


def cosine(optimizer):
    return CosineAnnealingLR(optimizer, 10)


for saved in (3, 8):
    unbroken = parts(cosine)
    run(*unbroken, saved)
    file = io.BytesIO()
    torch.save([part.state_dict() for part in unbroken], file)
    file.seek(0)
    resumed = parts(cosine)
    for part, state in zip(resumed, torch.load(file, weights_only=False)):
        part.load_state_dict(state)
    for name, scheduled in (("unbroken", unbroken), ("resumed", resumed)):
        rates, shown = run(*scheduled, 14 - saved)
        print(f"from step {saved}, {name}:", *rates, "| get_last_lr ends at", shown[-1])
plateau = parts(lambda optimizer: ReduceLROnPlateau(optimizer, patience=20))
print("warm-up before a plateau", *run(*plateau, 8, None, 1.0)[0])
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
from step 3, unbroken: 0.6 0.8 1.0 1.025 1.0 0.927 0.814 0.671 0.513 0.354 0.211 | get_last_lr ends at 1.025
from step 3, resumed: 0.6 0.8 1.0 0.615 0.615 0.615 0.615 0.615 0.615 0.615 0.615 | get_last_lr ends at 0.615
from step 8, unbroken: 0.927 0.814 0.671 0.513 0.354 0.211 | get_last_lr ends at 1.025
from step 8, resumed: 0.927 0.927 0.927 0.927 0.927 0.927 | get_last_lr ends at 1.025
warm-up before a plateau 1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0
SEEN
