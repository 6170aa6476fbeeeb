#!/usr/bin/env bash
# DeepCTR-Torch prints a mean loss and trains on a sum: 4,096 rows make SGD's step 58 times as long as 64 rows do.
#
# Guess: the loss that is printed, 0.70 at first for each size of batch, is what is learnt from; a batch of twice the
#        size has about the same gradient.
# Seen:  the gradient is that of the sum over the rows of a batch. At one rate of SGD batches of 64 learn, and the loss
#        of batches of 4,096 is 51 in the fourth epoch. With Adam, which scales gradients, only the weight of `l2_reg`
#        tells: it is added once to the sum, so that it counts for nothing in large batches. The AUC that is printed for
#        training is a mean of the AUC of batches: NaN as soon as one of them has one class alone.
# With:  deepctr-torch 0.3.0, torch 2.13.0, scikit-learn 1.9.1, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
packages="deepctr-torch==0.3.0 torch==2.13.0 scikit-learn==1.9.1 numpy==2.4.6 requests==2.34.2"
"$folder/env/bin/pip" install -q $packages 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | grep batches | tee seen.txt
import numpy
import torch
from deepctr_torch.inputs import DenseFeat
from deepctr_torch.models import WDL

rows = numpy.random.default_rng(0).random(4096).astype("float32")
labels, features = (rows > 0.5).astype("float32"), [DenseFeat("x", 1)]


def fit(size, count, epochs):
    """Return what DeepCTR-Torch logs, and how far the weights went."""
    model = WDL(features, features, dnn_hidden_units=(4,), l2_reg_linear=0, l2_reg_dnn=0, seed=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model.compile(optimizer, "binary_crossentropy", metrics=["auc"])
    start = torch.nn.utils.parameters_to_vector(model.parameters()).detach().clone()
    log = model.fit({"x": rows[:count]}, labels[:count], size, epochs, verbose=2, shuffle=False).history
    return log, (torch.nn.utils.parameters_to_vector(model.parameters()) - start).norm().item()


for size in (64, 512, 4096):
    one, path = fit(size, size, 1)
    log, _ = fit(size, 4096, 4)
    print(f"batches of {size} | first loss {one['loss'][0]:.2f}, first step {path:.3f}", end=" | ")
    print("losses of four epochs", *[round(loss, 2) for loss in log["loss"]])
log, _ = fit(8, 4096, 1)
print("batches of 8 | AUC of training", *log["auc"])
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
batches of 64 | first loss 0.69, first step 0.086 | losses of four epochs 0.47 0.19 0.12 0.09
batches of 512 | first loss 0.69, first step 0.784 | losses of four epochs 0.54 0.36 0.31 0.24
batches of 4096 | first loss 0.70, first step 5.012 | losses of four epochs 0.7 0.37 1.66 50.88
batches of 8 | AUC of training nan
SEEN
