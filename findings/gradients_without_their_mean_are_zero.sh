#!/usr/bin/env bash
# Ranger never moves the first layer of a model with one input: its gradient is 0 once its mean is taken away.
#
# Guess: centred gradients are a mild regularizer, so that each weight that has a gradient moves, sooner or later.
# Seen:  Ranger and ROSE of pytorch-optimizer subtract from each row of a gradient its mean, and a row of one number is
#        its own mean. A layer with one input keeps its weights to the last bit, as does a scale per channel of shape
#        (16, 1, 1), though both have gradients. Biases learn, and the loss falls to 0.3 where AdamW's goes to 0.0.
#        With `use_gc=False`, or with the Ranger of torch-optimizer, all of them move.
# With:  pytorch-optimizer 4.1.0, torch-optimizer 0.3.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q pytorch-optimizer==4.1.0 torch-optimizer==0.3.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
from functools import partial

import pytorch_optimizer
import torch
import torch_optimizer

times = torch.linspace(-2, 2, 64)[:, None]


class Model(torch.nn.Module):
    """Map one number to one number, with a scale for each channel between."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = torch.nn.Linear(1, 16), torch.nn.Linear(16, 1)
        self.scale = torch.nn.Parameter(torch.ones(16, 1, 1))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return a number for each input."""
        channels = torch.tanh(self.first(inputs)).T[..., None] * self.scale
        return self.last(channels[..., 0].T)


for name, kind in {
    "AdamW": torch.optim.AdamW,
    "Ranger": pytorch_optimizer.Ranger,
    "Ranger, use_gc=False": partial(pytorch_optimizer.Ranger, use_gc=False),
    "ROSE": pytorch_optimizer.ROSE,
    "Ranger of torch-optimizer": torch_optimizer.Ranger,
}.items():
    model, start = Model(), Model()
    optimizer = kind(model.parameters(), lr=0.02, weight_decay=0)
    for _ in range(1000):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(times), torch.sin(3 * times))
        loss.backward()
        slope = model.first.weight.grad.abs().max().item()
        optimizer.step()
    parts = ("first.weight", "first.bias", "scale")
    moved = [part for part in parts if not model.get_parameter(part).equal(start.get_parameter(part))]
    print(name, "| gradient of first.weight", "0" if slope == 0 else "above 0", "| moved", *moved, end=" | ")
    print("loss", f"{loss.item():.1f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
AdamW | gradient of first.weight above 0 | moved first.weight first.bias scale | loss 0.0
Ranger | gradient of first.weight above 0 | moved first.bias | loss 0.3
Ranger, use_gc=False | gradient of first.weight above 0 | moved first.weight first.bias scale | loss 0.0
ROSE | gradient of first.weight above 0 | moved first.bias | loss 0.2
Ranger of torch-optimizer | gradient of first.weight above 0 | moved first.weight first.bias scale | loss 0.0
SEEN
