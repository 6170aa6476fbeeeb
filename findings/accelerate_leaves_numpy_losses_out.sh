#!/usr/bin/env bash
# A loss that is NumPy's float32 stands in no file that Accelerate writes for TensorBoard; float64 and a tensor do.
#
# Guess: `accelerator.log` writes each number that it is given, or stops at one that it cannot write.
# Seen:  the tracker of TensorBoard writes what Python holds for an int or a float. NumPy's float64 is one, float32 and
#        int64 are not, and are left out without a word. So the mean of losses that were gathered in float32 is never
#        in the curve, and neither is a count of tokens; the same mean of a list of Python's numbers is. Other
#        curves of the same call are there, so that the missing one looks like a metric that was never computed. What a
#        plain `SummaryWriter` is given, it writes.
# With:  accelerate 1.15.0, tensorboard 2.21.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
packages="accelerate==1.15.0 tensorboard==2.21.0 torch==2.13.0 numpy==2.4.6"
"$folder/env/bin/pip" install -q $packages "setuptools<80" 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import numpy
import torch
from accelerate import Accelerator
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter

losses = torch.tensor([0.5, 0.25])
row = {
    "mean of a list": numpy.mean(losses.tolist()),
    "mean of float32": losses.numpy().mean(),
    "tensor": losses.mean(),
    "float of Python": losses.mean().item(),
    "count of numpy": numpy.sum([1, 2]),
    "count of Python": 3,
}
accelerator = Accelerator(log_with="tensorboard", project_dir="files", cpu=True)
accelerator.init_trackers("accelerate")
accelerator.log(row, step=1)
accelerator.end_training()
with SummaryWriter("files/plain") as writer:
    for name, value in row.items():
        writer.add_scalar(name, value, 1)
for name in ("accelerate", "plain"):
    reader = EventAccumulator(f"files/{name}")
    reader.Reload()
    for tag, value in row.items():
        found = tag in reader.Tags()["scalars"]
        print(name, "|", tag, "|", type(value).__name__, "|", "written" if found else "missing")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
accelerate | mean of a list | float64 | written
accelerate | mean of float32 | float32 | missing
accelerate | tensor | Tensor | written
accelerate | float of Python | float | written
accelerate | count of numpy | int64 | missing
accelerate | count of Python | int | written
plain | mean of a list | float64 | written
plain | mean of float32 | float32 | written
plain | tensor | Tensor | written
plain | float of Python | float | written
plain | count of numpy | int64 | written
plain | count of Python | int | written
SEEN
