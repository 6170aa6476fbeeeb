#!/usr/bin/env bash
# Weights that share a block with one larger gradient stop after one step in torchao's 4-bit AdamW.
#
# Guess: Adam's step does not depend on the size of a gradient: with 4 bits it is coarse, and about right in the mean.
# Seen:  each 128 weights share a scale. Next to a gradient a hundred times as large, the first moment of a weight is 0
#        in 4 bits, and the second moment is never 0 there: in 50 steps it moves by two rates, and from a thousand times
#        on by one, that of the first step. In 8 bits and fp8 the second moment is lost first, and steps are more than
#        four times as long. Weights in other blocks are right in all of them.
# With:  torchao 0.18.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torchao==0.18.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from torchao.optim import AdamW4bit, AdamW8bit, AdamWFp8

torch.compiler.set_stance("force_eager")
for ratio in (1, 100, 1000, 10000):
    print(f"1/{ratio} of the largest |", end="")
    for kind in (torch.optim.AdamW, AdamW4bit, AdamW8bit, AdamWFp8):
        weights = torch.nn.Parameter(torch.zeros(4096))
        optimizer = kind([weights], lr=1e-3, weight_decay=0.0)
        for _ in range(50):
            weights.grad = torch.full((4096,), 1e-3)
            weights.grad[0] *= ratio
            optimizer.step()
        same, other = (round(float(-weights[place]) / 1e-3) for place in (1, 3000))
        print(f" {kind.__name__} {same}, elsewhere {other};", end="")
    print()
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
1/1 of the largest | AdamW 50, elsewhere 50; AdamW4bit 50, elsewhere 50; AdamW8bit 50, elsewhere 50; AdamWFp8 50, elsewhere 50;
1/100 of the largest | AdamW 50, elsewhere 50; AdamW4bit 2, elsewhere 50; AdamW8bit 50, elsewhere 50; AdamWFp8 51, elsewhere 50;
1/1000 of the largest | AdamW 50, elsewhere 50; AdamW4bit 1, elsewhere 50; AdamW8bit 53, elsewhere 50; AdamWFp8 232, elsewhere 50;
1/10000 of the largest | AdamW 50, elsewhere 50; AdamW4bit 1, elsewhere 50; AdamW8bit 214, elsewhere 50; AdamWFp8 229, elsewhere 50;
SEEN
