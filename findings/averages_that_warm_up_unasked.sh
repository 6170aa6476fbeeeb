#!/usr/bin/env bash
# A moving average of weights with a decay of 0.9999 is at 49, 501 or 900 after 1,000 steps, by library.
#
# Guess: a decay of 0.9999 looks back 10,000 steps, so that after 1,000 steps most of an average is still its start;
#        `use_ema_warmup=False` of diffusers leaves the decay what it is.
# Seen:  that is so in PyTorch alone: a weight that goes from 1 to 1,000 has an average of 49. diffusers and torch-ema
#        take the least of the decay and (1 + steps) / (10 + steps), and look back a tenth of the run: 900. With
#        `use_ema_warmup=True` diffusers has another formula, and about the same; `min_decay` alone turns this off. A
#        decay of 0.999 gives the same number as 0.9999. ema-pytorch copies to step 100, then averages each tenth step.
#        So an early evaluation of the average is of its start in one library, and of a trained model in the other.
# With:  diffusers 0.42.1, torch-ema 0.3, ema-pytorch 0.8.3, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
packages="diffusers==0.42.1 torch-ema==0.3 ema-pytorch==0.8.3 torch==2.13.0 numpy==2.4.6"
"$folder/env/bin/pip" install -q $packages 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from diffusers.training_utils import EMAModel
from ema_pytorch import EMA
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch_ema import ExponentialMovingAverage

for decay in (0.9999, 0.999):
    for steps in (100, 1000):
        model = torch.nn.Linear(1, 1, bias=False)
        model.weight.data.fill_(0.0)
        own = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))
        plain = EMAModel(model.parameters(), decay=decay, use_ema_warmup=False)
        warm = EMAModel(model.parameters(), decay=decay, use_ema_warmup=True)
        held = EMAModel(model.parameters(), decay=decay, min_decay=decay)
        other = ExponentialMovingAverage(model.parameters(), decay=decay)
        each_tenth = EMA(model, beta=decay)
        for step in range(1, steps + 1):
            model.weight.data.fill_(step)
            own.update_parameters(model)
            for average in (plain, warm, held):
                average.step(model.parameters())
            other.update()
            each_tenth.update()
        print(f"{decay}, weight at {steps} | PyTorch {own.module.weight.item():.0f}", end=" | ")
        found = [f"{average.shadow_params[0].item():.0f}" for average in (plain, warm, held)]
        print("diffusers", found[0], "warm-up", found[1], "min_decay", found[2], end=" | ")
        print(f"torch-ema {other.shadow_params[0].item():.0f} | ema-pytorch {each_tenth.ema_model.weight.item():.0f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
0.9999, weight at 100 | PyTorch 1 | diffusers 90 warm-up 82 min_decay 1 | torch-ema 90 | ema-pytorch 91
0.9999, weight at 1000 | PyTorch 49 | diffusers 900 warm-up 907 min_decay 49 | torch-ema 900 | ema-pytorch 501
0.999, weight at 100 | PyTorch 6 | diffusers 90 warm-up 82 min_decay 6 | torch-ema 90 | ema-pytorch 91
0.999, weight at 1000 | PyTorch 369 | diffusers 900 warm-up 907 min_decay 369 | torch-ema 900 | ema-pytorch 501
SEEN
