#!/usr/bin/env bash
# Lightning's weight averaging validates the last weights and saves them as the model: the average has no val_loss.
#
# Guess: from `swa_epoch_start` on the callback averages weights, validates the average, and the best checkpoint holds
#        it.
# Seen:  it validates and saves the weights that are trained on. The average is put into the model after the last
#        validation, so that `fit` returns a model with a loss that no epoch has: 0.063 after 0.012. The best checkpoint
#        and the last one hold a weight of 0.8926 where the model has 0.7481, and `test` of the best tests the former.
#        The average lies in the file as a state of the callback, which no model loads.
# With:  lightning 2.6.6, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q lightning==2.6.6 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import logging

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint, StochasticWeightAveraging
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Model(lightning.LightningModule):
    """One weight, which is to become 1."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.losses = []

    def loss(self):
        return (self.weight - 1).square().mean()

    def training_step(self, batch, number):
        return self.loss()

    def validation_step(self, batch, number):
        self.losses.append(self.loss().item())
        self.log("val_loss", self.loss())

    def test_step(self, batch, number):
        self.log("test_loss", self.loss())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


rows = DataLoader(TensorDataset(torch.ones(4, 1)), batch_size=4)
for averaging in ([], [StochasticWeightAveraging(swa_lrs=0.1, swa_epoch_start=5)]):
    model, best = Model(), ModelCheckpoint("saved", monitor="val_loss", save_last=True)
    trainer = lightning.Trainer(
        max_epochs=10,
        callbacks=[best, *averaging],
        logger=False,
        accelerator="cpu",
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(model, rows, rows)
    print("averaged" if averaging else "plain", "| val_loss", *(f"{loss:.4f}" for loss in model.losses), end=" | ")
    print(f"after fit: loss {model.loss().item():.4f}, weight {model.weight.item():.4f}", end=" | ")
    for name, path in (("best", best.best_model_path), ("last", best.last_model_path)):
        saved = torch.load(path)
        average = saved["callbacks"].get("StochasticWeightAveraging", {}).get("average_model_state") or {}
        weights = [saved["state_dict"]["weight"], *average.values()]
        print(name, *(f"{weight.item():.4f}" for weight in weights), end=" | ")
    print(f"test of best {trainer.test(model, rows, 'best', verbose=False)[0]['test_loss']:.4f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
plain | val_loss 0.6400 0.4096 0.2621 0.1678 0.1074 0.0687 0.0440 0.0281 0.0180 0.0115 | after fit: loss 0.0115, weight 0.8926 | best 0.8926 | last 0.8926 | test of best 0.0115
averaged | val_loss 0.6400 0.4096 0.2621 0.1678 0.1074 0.0687 0.0440 0.0281 0.0180 0.0115 | after fit: loss 0.0634, weight 0.7481 | best 0.8926 0.7481 | last 0.8926 0.7481 | test of best 0.0115
SEEN
