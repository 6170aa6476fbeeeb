#!/usr/bin/env bash
# The mean of an epoch that torchmetrics keeps is finite although the loss of a batch was NaN.
#
# Guess: MeanMetric, MaxMetric and MinMetric are NaN from the first NaN on, as the mean of the same tensor is; an epoch
#        whose mean loss is finite had no loss that was NaN.
# Seen:  each NaN is left out, so that the mean goes on falling. A warning tells it once, and Python does not repeat it.
#        Infinity is kept. The mean is NaN only where every batch was; with `nan_strategy="disable"` each NaN stays.
# With:  torchmetrics 1.9.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torchmetrics==1.9.0 "torch<2.14" numpy 2>/dev/null
cd "$folder"
env/bin/python - 2>warned.txt <<'PYTHON' | tee seen.txt
import torch
from torchmetrics import MaxMetric, MeanMetric, MinMetric

nan, inf = float("nan"), float("inf")


def kept(metric, *losses):
    """Return what a metric says of an epoch with these losses."""
    for loss in losses:
        metric.update(torch.tensor(loss))
    return metric.compute().item()


print("mean", kept(MeanMetric(), 2.0, nan, nan, nan, 1.0), "most", kept(MaxMetric(), 2.0, nan), end=" ")
print("least", kept(MinMetric(), 2.0, nan))
print("infinity", kept(MeanMetric(), 2.0, inf), "all", kept(MeanMetric(), nan, nan))
print("disabled", kept(MeanMetric(nan_strategy="disable"), 2.0, nan, 1.0), "torch", torch.tensor([2.0, nan]).mean().item())
PYTHON
echo "warned $(grep -c UserWarning warned.txt) time(s)" | tee -a seen.txt
diff seen.txt - <<'SEEN' && echo "as found"
mean 1.5 most 2.0 least 2.0
infinity inf all nan
disabled nan torch nan
warned 1 time(s)
SEEN
