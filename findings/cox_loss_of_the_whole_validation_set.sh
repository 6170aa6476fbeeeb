#!/usr/bin/env bash
# The validation loss of a Cox model in pycox is 6.8 where its training loss is 2.7, and neither rows nor model differ.
#
# Guess: both are means over rows. A gap of four from the first epoch on is overfitting, or other data.
# Seen:  the loss of a row is against the rows of its own batch that outlive it: it grows by about ln of the batch's
#        size. `fit` takes batches of 256 if none is named, and 8,224 for validation. A model at learning rate 0 has the
#        gap. It vanishes with `val_batch_size`, and runs of two batch sizes are not comparable.
# With:  pycox 0.3.0, torchtuples 0.2.2, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q --no-deps pycox==0.3.0 torchtuples==0.2.2 2>/dev/null
packages="torch==2.13.0 numpy==2.4.6 pandas==3.1.1 scikit-learn==1.9.1 numba==0.68.1 h5py==3.16.0 requests==2.34.2"
"$folder/env/bin/pip" install -q $packages 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import numpy
import torch
from pycox.models import CoxPH
from torchtuples import optim, practical

draw = numpy.random.default_rng(0)
rows = draw.normal(size=(2000, 4)).astype("float32")
ends = draw.exponential(size=2000).astype("float32"), numpy.ones(2000, "float32")
for size in (32, 256):
    for options in ({}, {"val_batch_size": size}):
        numpy.random.seed(0)
        torch.manual_seed(0)
        model = CoxPH(practical.MLPVanilla(4, [], 1, False, None), optim.SGD(0.0))
        log = model.fit(rows, ends, size, 1, [], verbose=False, val_data=(rows, ends), **options).to_pandas()
        losses = (f"{name} {log[name].iloc[0]:.1f}" for name in ("train_loss", "val_loss"))
        print("batches of", size, options, "|", *losses)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
batches of 32 {} | train_loss 2.7 val_loss 6.8
batches of 32 {'val_batch_size': 32} | train_loss 2.7 val_loss 2.7
batches of 256 {} | train_loss 4.7 val_loss 6.8
batches of 256 {'val_batch_size': 256} | train_loss 4.7 val_loss 4.7
SEEN
