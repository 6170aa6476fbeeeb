#!/usr/bin/env bash
# fastai logs a train_loss of 1.92 and a valid_loss of 0.17 for the same rows: its training loss is of epochs ago.
#
# Guess: the table has means of an epoch. On the same rows, without dropout, both columns hold about one number, at most
#        one epoch apart.
# Seen:  `train_loss` is an average over batches that keeps 0.98 of what it was, and goes on from epoch to epoch. Of one
#        batch an epoch it looks back fifty epochs: at the ninth it is eleven times the loss of the model, which seems
#        to train worse than it validates. A new `fit` begins anew: its first epoch logs 0.06. With 8 batches an epoch
#        it looks back six epochs.
# With:  fastai 2.8.12, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q --no-deps fastai==2.8.12 fasttransform==0.0.5 fastdownload==0.0.8 2>/dev/null
"$folder/env/bin/pip" install -q fastcore==2.2.41 fastprogress==1.1.6 plum-dispatch==2.9.0 pandas==3.1.1 torch==2.13.0 \
    requests pillow pyyaml matplotlib scipy scikit-learn cloudpickle numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from fastai.basics import DataLoaders, Learner
from fastai.data.load import DataLoader
from fastai.losses import MSELossFlat
from fastai.optimizer import SGD

torch.manual_seed(0)
inputs = torch.randn(64, 4)
rows = list(zip(inputs, inputs @ torch.tensor([[1.0], [2.0], [-1.0], [0.5]]), strict=True))
for size in (64, 8):
    model = torch.nn.Linear(4, 1)
    loaders = DataLoaders(DataLoader(rows, bs=size), DataLoader(rows, bs=size))
    learner = Learner(loaders, model, loss_func=MSELossFlat(), opt_func=SGD)
    learner.logger = lambda row: None
    for epochs in (12, 1):
        learner.fit(epochs, 0.1 * size / 64)
        print("batches of", size, "| epochs", epochs, "| train_loss and valid_loss", end="")
        print(*(f" {train:.2f} {valid:.2f}" for train, valid in learner.recorder.values[::4]), sep=",")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
batches of 64 | epochs 12 | train_loss and valid_loss 6.58 4.15, 3.19 0.75, 1.92 0.17
batches of 64 | epochs 1 | train_loss and valid_loss 0.06 0.04
batches of 8 | epochs 12 | train_loss and valid_loss 5.92 4.59, 2.66 0.90, 1.29 0.21
batches of 8 | epochs 1 | train_loss and valid_loss 0.07 0.06
SEEN
