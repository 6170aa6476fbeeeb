#!/usr/bin/env bash
# A Cox model of pycox is NaN in its first epoch if few die: one batch in which nobody does is enough.
#
# Guess: a batch without an event has nothing to compare, so that its loss is 0 and its gradient, too.
# Seen:  pycox divides by the number of events, 0 by 0. The gradient is NaN, and after it each weight; nothing stops or
#        warns. Where one in twenty dies, one in 27 batches of 64 rows has no event, and the loss of the first epoch is
#        NaN. Batches of 1,000 are well, as is a share of a third, so that it looks like the data or the learning rate.
#        torchsurv calls the loss of such a batch 0, which changes nothing, and warns.
# With:  pycox 0.3.0, torchtuples 0.2.2, torchsurv 0.2.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q --no-deps pycox==0.3.0 torchtuples==0.2.2 2>/dev/null
packages="torch==2.13.0 torchsurv==0.2.0 numpy==2.4.6 pandas==3.1.1 scikit-learn==1.9.1 numba==0.68.1 h5py==3.16.0"
"$folder/env/bin/pip" install -q $packages requests==2.34.2 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import numpy
import torch
from pycox.models import CoxPH
from pycox.models.loss import cox_ph_loss
from torchsurv.loss.cox import neg_partial_log_likelihood
from torchtuples import optim

draw = numpy.random.default_rng(0)
rows, times = draw.standard_normal((2000, 4)).astype("float32"), draw.random(2000).astype("float32")
for share in (0.3, 0.05):
    died = (draw.random(2000) < share).astype("float32")
    for size in (64, 1000):
        torch.manual_seed(0)
        numpy.random.seed(0)
        network = torch.nn.Linear(4, 1)
        log = CoxPH(network, optim.Adam(0.01)).fit(rows, (times, died), size, 2, [], verbose=False)
        losses = log.to_pandas().train_loss.round(1).tolist()
        print(f"{share:.0%} died, batches of {size} | train_loss", *losses, end=" | ")
        print("weights that are NaN", int(network.weight.isnan().sum()), "of 4")
risks, times, nobody = torch.zeros(8, 1, requires_grad=True), torch.rand(8), torch.zeros(8)
loss = cox_ph_loss(risks, times, nobody)
loss.backward()
print("a batch without an event | pycox", loss.item(), "gradient", risks.grad.sum().item(), end=" | ")
loss = neg_partial_log_likelihood(risks, nobody.bool(), times)
risks.grad = None
loss.backward()
print("torchsurv", loss.item(), "gradient", risks.grad)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
30% died, batches of 64 | train_loss 3.2 3.2 | weights that are NaN 0 of 4
30% died, batches of 1000 | train_loss 6.1 6.0 | weights that are NaN 0 of 4
5% died, batches of 64 | train_loss nan nan | weights that are NaN 4 of 4
5% died, batches of 1000 | train_loss 6.0 6.0 | weights that are NaN 0 of 4
a batch without an event | pycox nan gradient nan | torchsurv 0.0 gradient None
SEEN
