#!/usr/bin/env bash
# Accelerate's seedable sampler, made for reproducible runs, makes a resumed run repeat the order of its first epochs.
#
# Guess: `use_seedable_sampler=True` gives a run that is resumed after two epochs the order of an unbroken run; without
#        it the order may differ.
# Seen:  it is the other way round. Without it the random state of the checkpoint gives the unbroken order. With it the
#        loader counts its epochs from 0 again after `load_state`: epochs 2 and 3 are in the order of 0 and 1. Only
#        `loader.set_epoch(2)` puts that right.
# With:  accelerate 1.15.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q accelerate==1.15.0 torch==2.13.0 2>/dev/null
cd "$folder"
cat > train.py <<'PYTHON'
import json
import sys

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed

set_seed(0)
sampler, run = sys.argv[1:]
configuration = DataLoaderConfiguration(use_seedable_sampler=sampler == "seedable")
accelerator = Accelerator(cpu=True, dataloader_config=configuration)
loader = accelerator.prepare(torch.utils.data.DataLoader(list(range(8)), batch_size=1, shuffle=True))


def epochs():
    return [[int(row) for row in loader] for _ in range(2)]


if run == "unbroken":
    first = epochs()
    accelerator.save_state(sampler)
    json.dump([first, epochs()], open(f"{sampler}.json", "w"))
else:
    accelerator.load_state(sampler)
    if run == "set_epoch":
        loader.set_epoch(2)
    first, second = json.load(open(f"{sampler}.json"))
    orders = epochs()
    print(sampler, run, "| as epochs 2 and 3", orders == second, "| as epochs 0 and 1", orders == first)
PYTHON
for run in "plain unbroken" "plain resumed" "seedable unbroken" "seedable resumed" "seedable set_epoch"; do
    env/bin/python train.py $run 2>/dev/null
done | tee seen.txt
diff seen.txt - <<'SEEN' && echo "as found"
plain resumed | as epochs 2 and 3 True | as epochs 0 and 1 False
seedable resumed | as epochs 2 and 3 False | as epochs 0 and 1 True
seedable set_epoch | as epochs 2 and 3 True | as epochs 0 and 1 False
SEEN
