#!/usr/bin/env bash
# A resumed run of a bf16 model holds its optimizer's second moments in bf16, whatever they were before.
#
# Guess: `load_state_dict` restores the state that `state_dict` gave: a run goes on as if it had not stopped.
# Seen:  PyTorch casts the state to the type of its weights. transformers' Adafactor keeps float32 moments for bf16
#        weights. Loaded, they are bf16, and the next update differs from that of the unbroken run.
# With:  torch 2.13.0, transformers 5.24.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 transformers==5.24.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import copy

import torch
from transformers.optimization import Adafactor

torch.manual_seed(0)
weights = torch.nn.Parameter(torch.randn(64, 64, dtype=torch.bfloat16))
resumed = torch.nn.Parameter(torch.zeros_like(weights))


def adafactor(parameter):
    return Adafactor([parameter], lr=1e-2, scale_parameter=False, relative_step=False)


unbroken, loaded = adafactor(weights), adafactor(resumed)
for _ in range(3):
    weights.grad = torch.randn_like(weights)
    unbroken.step()
resumed.data.copy_(weights.data)
loaded.load_state_dict(copy.deepcopy(unbroken.state_dict()))
for name, parameter, optimizer in (("unbroken", weights, unbroken), ("loaded", resumed, loaded)):
    moments = {key: str(value.dtype) for key, value in optimizer.state[parameter].items() if key.startswith("exp")}
    print(name, moments)
weights.grad = torch.randn_like(weights)
resumed.grad = weights.grad.clone()
unbroken.step()
loaded.step()
print("the next update is the same", torch.equal(weights, resumed))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
unbroken {'exp_avg_sq_row': 'torch.float32', 'exp_avg_sq_col': 'torch.float32'}
loaded {'exp_avg_sq_row': 'torch.bfloat16', 'exp_avg_sq_col': 'torch.bfloat16'}
the next update is the same False
SEEN
