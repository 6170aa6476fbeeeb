#!/usr/bin/env bash
# The weight decay of SM3 stands in its parameter groups and decays nothing: optimizers take options that they lack.
#
# Guess: an option that an optimizer does not have, or that is misspelled, raises a TypeError, as in PyTorch.
# Seen:  those of pytorch-optimizer take any option and leave out what they do not know. A momentum for LaProp, a
#        `beta` in place of `betas` for Lion, and a misspelled weight decay change no bit of the weights. Some even
#        show the option in `param_groups`, where a log of the run's settings finds it. SM3, AdaShift, Amos, A2Grad and
#        MSVAG have no weight decay, and `create_optimizer` hands it to them.
# With:  pytorch-optimizer 4.1.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q pytorch-optimizer==4.1.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import pytorch_optimizer
import torch


def trained(build) -> tuple[torch.Tensor, list[dict]]:
    """Return the weights after 100 steps, and the parameter groups."""
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    optimizer = build(model)
    for _ in range(100):
        optimizer.zero_grad()
        model(torch.ones(8, 4)).square().mean().backward()
        optimizer.step()
    return model.weight.detach(), optimizer.param_groups


for name, option in (
    ("Lion", {"weight_decay": 0.5}),
    ("Lion", {"beta": (0.5, 0.5)}),
    ("LaProp", {"momentum": 0.5}),
    ("AdaBound", {"wieght_decay": 0.5}),
):
    kind = pytorch_optimizer.load_optimizer(name)
    weights, groups = trained(lambda model: kind(model.parameters(), lr=0.01, **option))
    plain, _ = trained(lambda model: kind(model.parameters(), lr=0.01))
    print(name, option, "| weights as without it:", weights.equal(plain), end=" | ")
    print("in the groups:", set(option) <= set(groups[0]))
for name in ("SM3", "AdaShift", "Amos", "A2Grad", "MSVAG"):
    weights, groups = trained(lambda model: pytorch_optimizer.create_optimizer(model, name, 0.01, weight_decay=0.5))
    plain, _ = trained(lambda model: pytorch_optimizer.create_optimizer(model, name, 0.01))
    print(name, "created | weights as without it:", weights.equal(plain), end=" | ")
    print("weight decay in the groups", groups[0]["weight_decay"])
try:
    torch.optim.SGD([torch.zeros(1)], lr=0.01, wieght_decay=0.5)
except TypeError:
    print("SGD of torch | TypeError")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
Lion {'weight_decay': 0.5} | weights as without it: False | in the groups: True
Lion {'beta': (0.5, 0.5)} | weights as without it: True | in the groups: True
LaProp {'momentum': 0.5} | weights as without it: True | in the groups: True
AdaBound {'wieght_decay': 0.5} | weights as without it: True | in the groups: False
SM3 created | weights as without it: True | weight decay in the groups 0.5
AdaShift created | weights as without it: True | weight decay in the groups 0.5
Amos created | weights as without it: True | weight decay in the groups 0.5
A2Grad created | weights as without it: True | weight decay in the groups 0.5
MSVAG created | weights as without it: True | weight decay in the groups 0.5
SGD of torch | TypeError
SEEN
