#!/usr/bin/env bash
# The norm of a weight under PyTorch's FSDP2 is 11.8 in one process and 33.2 in the other, where the weight has 35.2.
#
# Guess: a sharded weight is a DTensor that stands for the whole: `norm()`, `mean()` and `max()` are of all of it, as
#        its shape is, or `item()` raises an error.
# Seen:  they give a part that is still to be reduced, and `item()` reads that of its own process without a word: the
#        norm, mean and maximum of one half. Each process logs another number. The norm that `clip_grad_norm_` returns,
#        a DTensor too, is the same: clipping itself uses the whole norm. `full_tensor()` before `item()` puts each of
#        them right.
# With:  torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import pathlib
import subprocess
import sys

pathlib.Path("worker.py").write_text("""
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=2)
model = torch.nn.Linear(4, 4, bias=False)
with torch.no_grad():
    model.weight.copy_(torch.arange(16.0).reshape(4, 4))
whole = model.weight.detach().clone()
fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
model(torch.ones(2, 4)).square().mean().backward()
weight, lines = model.weight, []
for name, compute in {
    "norm": lambda tensor: tensor.norm(),
    "mean": lambda tensor: tensor.mean(),
    "largest": lambda tensor: tensor.max(),
}.items():
    value = compute(weight.detach())
    full = value.full_tensor().item()
    lines.append(f"{name} {value.item():.2f}, full_tensor {full:.2f}, whole {compute(whole).item():.2f}")
norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
lines.append(f"norm of gradients {norm.item():.2f}, full_tensor {norm.full_tensor().item():.2f}")
lines.append(f"after clipping to 1: full_tensor {weight.grad.norm().full_tensor().item():.2f}")
lines.append(f"elements {weight.numel()}")
open(f"seen{rank}", "w").write(" | ".join([f"process {rank}", *lines]))
dist.barrier()
dist.destroy_process_group()
""")
store = pathlib.Path("store").resolve()
processes = [subprocess.Popen([sys.executable, "worker.py", str(rank), str(store)]) for rank in range(2)]
for process in processes:
    assert process.wait() == 0
for rank in range(2):
    print(pathlib.Path(f"seen{rank}").read_text())
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
process 0 | norm 11.83, full_tensor 35.21, whole 35.21 | mean 3.50, full_tensor 7.50, whole 7.50 | largest 7.00, full_tensor 15.00, whole 15.00 | norm of gradients 69.86, full_tensor 69.86 | after clipping to 1: full_tensor 1.00 | elements 16
process 1 | norm 33.17, full_tensor 35.21, whole 35.21 | mean 11.50, full_tensor 7.50, whole 7.50 | largest 15.00, full_tensor 15.00, whole 15.00 | norm of gradients 69.86, full_tensor 69.86 | after clipping to 1: full_tensor 1.00 | elements 16
SEEN
