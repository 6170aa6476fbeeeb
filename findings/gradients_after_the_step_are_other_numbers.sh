#!/usr/bin/env bash
# A gradient norm that is logged after `step()` is 32 where the gradient is 0.03, or 3,141: Schedule-Free writes over it.
#
# Guess: `step()` changes weights and its own state; `.grad` stays what `backward()` left, until `zero_grad()`.
# Seen:  that holds for PyTorch's own. Schedule-Free's AdamW leaves its normalized gradient there: the norm in the log is
#        about the root of the number of weights, whatever the loss does, so that neither an explosion nor a vanishing
#        gradient is to be seen. NovoGrad and StableSPAM leave about 1, GrokFast twice the gradient, and LARS the rate
#        of its layer. With weight decay Schedule-Free's SGD and D-Adaptation leave the decay in it, a hundred
#        times the gradient here. Where `zero_grad()` waits for more batches, the next gradient is added to all that.
# With:  schedulefree 1.4.1, dadaptation 3.2, pytorch-optimizer 4.1.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q schedulefree==1.4.1 dadaptation==3.2 pytorch-optimizer==4.1.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import dadaptation
import pytorch_optimizer
import schedulefree
import torch


def norms(kind, decay, scale):
    """Return the norm of the gradient before and after the third step."""
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(20, 50))
    optimizer = kind([weight], lr=1e-3, weight_decay=decay)
    if hasattr(optimizer, "train"):
        optimizer.train()
    for _ in range(3):
        weight.grad = scale * torch.randn(20, 50)
        before = float(weight.grad.norm())
        optimizer.step()
    return before, float(weight.grad.norm())


kinds = {
    "AdamW of PyTorch": torch.optim.AdamW,
    "SGD of PyTorch": torch.optim.SGD,
    "Schedule-Free AdamW": schedulefree.AdamWScheduleFree,
    "Schedule-Free SGD": schedulefree.SGDScheduleFree,
    "D-Adaptation SGD": dadaptation.DAdaptSGD,
    "NovoGrad": pytorch_optimizer.load_optimizer("novograd"),
    "StableSPAM": pytorch_optimizer.load_optimizer("stablespam"),
    "GrokFast AdamW": pytorch_optimizer.load_optimizer("grokfastadamw"),
    "LARS": pytorch_optimizer.load_optimizer("lars"),
}
for name, kind in kinds.items():
    print(name, end=": ")
    for decay, scale in ((0.0, 0.001), (0.0, 100.0), (0.1, 0.001)):
        before, after = norms(kind, decay, scale)
        print(f"decay {decay} {before:.4g} -> {after:.4g}", end="; " if decay == 0 else "\n")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
AdamW of PyTorch: decay 0.0 0.03141 -> 0.03141; decay 0.0 3141 -> 3141; decay 0.1 0.03141 -> 0.03141
SGD of PyTorch: decay 0.0 0.03141 -> 0.03141; decay 0.0 3141 -> 3141; decay 0.1 0.03141 -> 0.03141
Schedule-Free AdamW: decay 0.0 0.03141 -> 32.04; decay 0.0 3141 -> 32.04; decay 0.1 0.03141 -> 32.02
Schedule-Free SGD: decay 0.0 0.03141 -> 0.03141; decay 0.0 3141 -> 3141; decay 0.1 0.03141 -> 3.251
D-Adaptation SGD: decay 0.0 0.03141 -> 0.03141; decay 0.0 3141 -> 3141; decay 0.1 0.03141 -> 3.251
NovoGrad: decay 0.0 0.03141 -> 1.022; decay 0.0 3141 -> 1.022; decay 0.1 0.03141 -> 3.353
StableSPAM: decay 0.0 0.03141 -> 1.002; decay 0.0 3141 -> 1.002; decay 0.1 0.03141 -> 1.002
GrokFast AdamW: decay 0.0 0.03141 -> 0.06473; decay 0.0 3141 -> 6473; decay 0.1 0.03141 -> 0.06473
LARS: decay 0.0 0.03141 -> 0.04996; decay 0.0 3141 -> 0.04996; decay 0.1 0.03141 -> 0.0873
SEEN
