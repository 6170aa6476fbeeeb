#!/usr/bin/env bash
# The loss of a Brevitas model jumps from 1.1 to 43 at its 301st step: Adam with a weight decay of 0.000001.
#
# Guess: a weight decay that small changes nothing, least of all the range of an activation, which is taken from the
#        activations of the first 300 steps.
# Seen:  for 300 steps a range is measured, and its parameter stands at 1.0 with a gradient of 0; then it is multiplied
#        by what was measured. Adam's decay is part of the gradient, and Adam divides by its size: of the decay alone
#        each step is a whole learning rate, however small the decay. So the 1.0 is 0.7 after 300 steps at a rate of
#        0.001, and 0.09 at 0.005. From step 301 on all that is larger is cut. Evaluation shows nothing before. With a
#        decay of 0, or with AdamW or SGD, the range is as measured.
# With:  brevitas 0.13.4, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q brevitas==0.13.4 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import brevitas.nn
import torch
from torch.optim import SGD, Adam, AdamW


def run(kind, rate, decay):
    """Return the losses and the parameter of the range around step 300, and the loss of evaluation before."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), brevitas.nn.QuantReLU(), torch.nn.Linear(32, 1))
    scale = next(weight for name, weight in model.named_parameters() if "scaling" in name)
    optimizer = kind(model.parameters(), lr=rate, weight_decay=decay)
    rows = torch.randn(256, 8)
    goals = rows[:, :1] * 3 + 10
    losses, scales = [], []
    for step in range(302):
        if step == 300:
            with torch.no_grad():
                evaluated = (model.eval()(rows) - goals).square().mean()
        loss = (model.train()(rows) - goals).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
        scales.append(float(scale.detach()))
    print(f"{kind.__name__}, rate {rate}, decay {decay}: loss at steps 300 to 302", end=" ")
    print(*(f"{loss:.2f}" for loss in losses[299:]), f"| evaluated before step 301 {evaluated:.2f}", end=" | ")
    print(f"parameter {scales[299]:.2f}, range {scales[300]:.2f}")


run(Adam, 0.001, 0)
run(Adam, 0.001, 1e-6)
run(Adam, 0.005, 0)
run(Adam, 0.005, 1e-6)
run(Adam, 0.005, 1e-4)
run(AdamW, 0.005, 1e-2)
run(SGD, 0.01, 1e-4)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
Adam, rate 0.001, decay 0: loss at steps 300 to 302 14.27 14.06 13.88 | evaluated before step 301 14.06 | parameter 1.00, range 6.68
Adam, rate 0.001, decay 1e-06: loss at steps 300 to 302 14.27 14.07 13.88 | evaluated before step 301 14.06 | parameter 0.72, range 4.83
Adam, rate 0.005, decay 0: loss at steps 300 to 302 1.11 1.10 1.10 | evaluated before step 301 1.10 | parameter 1.00, range 6.03
Adam, rate 0.005, decay 1e-06: loss at steps 300 to 302 1.11 43.40 42.55 | evaluated before step 301 1.10 | parameter 0.09, range 0.58
Adam, rate 0.005, decay 0.0001: loss at steps 300 to 302 1.11 45.62 44.74 | evaluated before step 301 1.10 | parameter 0.09, range 0.55
AdamW, rate 0.005, decay 0.01: loss at steps 300 to 302 1.11 1.11 1.10 | evaluated before step 301 1.10 | parameter 0.99, range 5.89
SGD, rate 0.01, decay 0.0001: loss at steps 300 to 302 0.08 0.08 0.08 | evaluated before step 301 0.08 | parameter 1.00, range 3.44
SEEN
