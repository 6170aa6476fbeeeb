#!/usr/bin/env bash
# A training loop inside one `torch.autocast` block logs the very same loss for ever, while its weights move.
#
# Guess: whether the block holds the loop or each step holds a block is a matter of taste: weights are cast as needed.
# Seen:  autocast keeps the bfloat16 copy of each weight until the outermost block ends. In the loop all later steps see
#        the weights of the first: the loss stays to the last digit, as of a frozen model. Yet gradients are not zero,
#        and each step moves the weights further along the first gradient. `cache_enabled=False` is the loop's cure.
# With:  torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
from contextlib import nullcontext

import torch


def cast(**settings: bool) -> torch.autocast:
    """Return a block of mixed precision on the CPU."""
    return torch.autocast("cpu", dtype=torch.bfloat16, **settings)


def train(around: object, within: type) -> tuple[list[float], float]:
    """Return the losses of 20 steps, and how far the weights then are from where they began."""
    torch.manual_seed(0)
    model, rows = torch.nn.Linear(4, 1), torch.randn(32, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    start, losses = model.weight.detach().clone(), []
    with around:
        for _ in range(20):
            with within():
                loss = torch.nn.functional.mse_loss(model(rows).float(), rows.sum(1, keepdim=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses, float((model.weight.detach() - start).norm())


for name, blocks in {
    "a block in each step": (nullcontext(), cast),
    "one block around": (cast(), nullcontext),
    "one without its cache": (cast(cache_enabled=False), nullcontext),
}.items():
    losses, moved = train(*blocks)
    fell = losses[-1] < losses[0] / 10
    print(name, "| different losses", len(set(losses)), "| fell", fell, "| weights moved by", round(moved))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
a block in each step | different losses 20 | fell True | weights moved by 2
one block around | different losses 1 | fell False | weights moved by 5
one without its cache | different losses 20 | fell True | weights moved by 2
SEEN
