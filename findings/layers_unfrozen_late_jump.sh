#!/usr/bin/env bash
# A layer that is unfrozen after 1,000 steps jumps five to thirty times as far as its rate says: steps count by group.
#
# Guess: Adam begins anew for a weight that gets its first gradient late: its first steps are one rate long each, as
#        they would have been at the start.
# Seen:  PyTorch counts the steps of each weight. Most optimizers of pytorch-optimizer, and Schedule-Free, count those of
#        the group, frozen weights included. The moments of a late layer begin at 0 and are no longer corrected for that.
#        With Adam's numbers its first step is 2.5 rates and soon 4.6; in 20 steps it goes 96 rates with AdamP, 162
#        with AdaBelief, 253 with LaProp and 609 with AdaBound, where 20 is usual. RAdam, which begins with no steps at
#        all, makes 62. Adan and StableAdamW go half the way. The loss leaps where a layer is unfrozen, as if its
#        rate were too high, and no rate shows it. A second group for the layer counts anew.
# With:  pytorch-optimizer 4.1.0, schedulefree 1.4.1, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q pytorch-optimizer==4.1.0 schedulefree==1.4.1 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import pytorch_optimizer
import schedulefree
import torch

RATE = 0.001


def steps(kind, frozen, own_group=False):
    """Return how many rates a weight with a gradient of 1 goes in each of 20 steps, after so many steps without one."""
    generator = torch.Generator().manual_seed(0)
    body, head = torch.nn.Parameter(torch.ones(4, 4)), torch.nn.Parameter(torch.ones(4, 4))
    groups = [{"params": [body]}, {"params": [head]}] if own_group else [body, head]
    optimizer = kind(groups[:1] if own_group else groups, lr=RATE)
    if hasattr(optimizer, "train"):
        optimizer.train()
    ways = []
    for step in range(frozen + 20):
        if own_group and step == frozen:
            optimizer.add_param_group(groups[1])
        body.grad = torch.randn(4, 4, generator=generator)
        head.grad = torch.ones(4, 4) if step >= frozen else None
        before = head.detach().clone()
        optimizer.step()
        ways.append(float((before - head.detach()).mean()) / RATE)
    return ways[-20:]


kinds = {"PyTorch's AdamW": torch.optim.AdamW, "Schedule-Free AdamW": schedulefree.AdamWScheduleFree}
for name in ("AdamP", "AdaBelief", "LaProp", "AdaBound", "RAdam", "Adan", "StableAdamW", "Lion"):
    kinds[name] = pytorch_optimizer.load_optimizer(name.lower())
for name, kind in kinds.items():
    print(name, end=": ")
    for case, ways in (("at once", steps(kind, 0)), ("after 1,000 steps", steps(kind, 1000))):
        print(f"{case} {ways[0]:.1f}, {ways[4]:.1f}, in all {sum(ways):.0f}", end="; ")
    try:
        print(f"in a group of its own {sum(steps(kind, 1000, own_group=True)):.0f}")
    except IndexError:
        print("in a group of its own IndexError")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
PyTorch's AdamW: at once 1.0, 1.0, in all 20; after 1,000 steps 1.0, 1.0, in all 20; in a group of its own 20
Schedule-Free AdamW: at once 1.0, 0.6, in all 11; after 1,000 steps 2.5, 1.2, in all 21; in a group of its own 11
AdamP: at once 1.0, 1.0, in all 20; after 1,000 steps 2.5, 4.6, in all 96; in a group of its own 20
AdaBelief: at once 1.1, 1.3, in all 33; after 1,000 steps 2.8, 6.2, in all 162; in a group of its own 33
LaProp: at once 1.0, 1.0, in all 20; after 1,000 steps 25.2, 15.6, in all 253; in a group of its own 20
AdaBound: at once 1.0, 1.0, in all 23; after 1,000 steps 5.0, 20.5, in all 609; in a group of its own IndexError
RAdam: at once 0.0, 0.0, in all 1; after 1,000 steps 1.6, 3.0, in all 62; in a group of its own 1
Adan: at once 1.0, 1.0, in all 20; after 1,000 steps 0.2, 0.4, in all 11; in a group of its own 20
StableAdamW: at once 1.0, 1.0, in all 20; after 1,000 steps 0.1, 0.4, in all 12; in a group of its own 20
Lion: at once 1.0, 1.0, in all 20; after 1,000 steps 1.0, 1.0, in all 20; in a group of its own 20
SEEN
