#!/usr/bin/env bash
# Each evaluation of a model in quantization-aware training changes it: `eval()` does not stop its observers.
#
# Guess: under `eval()` and `no_grad()` a forward pass changes nothing, as for batch normalization.
# Seen:  the fake quantization of activations widens its ranges by what it sees in evaluation, too. Rows twenty times as
#        large, seen 50 times, make its scale eight times as coarse, and the loss on usual rows 45 times as large. So
#        scores depend on the order of the sets evaluated, and the next checkpoint holds those ranges.
#        `disable_observer` stops it.
# With:  torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from torch.ao import quantization


def evaluations(stopped: bool) -> tuple[float, float, float]:
    """Return losses on usual rows before and after an evaluation of odd rows, and the growth of the input's scale."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(quantization.QuantStub(), torch.nn.Linear(4, 1), quantization.DeQuantStub())
    model.qconfig = quantization.get_default_qat_qconfig("fbgemm")
    quantization.prepare_qat(model.train(), inplace=True)
    rows = torch.randn(256, 4)
    wanted = rows.sum(1, keepdim=True)
    model[1].weight.data.fill_(1.0)
    model[1].bias.data.zero_()
    for _ in range(100):
        model(rows)
    model.eval()
    if stopped:
        model.apply(quantization.disable_observer)
    losses, scales = [], []
    with torch.no_grad():
        for scale in (1, *[20] * 50, 1):
            losses.append(torch.nn.functional.mse_loss(model(rows * scale), wanted * scale).item())
            scales.append(model[0].activation_post_process.scale.item())
    return losses[0], losses[-1], scales[-1] / scales[0]


for stopped in (False, True):
    first, last, coarser = evaluations(stopped)
    print("observers stopped", stopped, f"| scale times {coarser:.0f} | loss over ten times", last > 10 * first)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
observers stopped False | scale times 8 | loss over ten times True
observers stopped True | scale times 1 | loss over ten times False
SEEN
