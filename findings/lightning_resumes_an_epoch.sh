#!/usr/bin/env bash
# A Lightning run that is resumed amid an epoch sees its first rows twice, or leaves the rest of the epoch out.
#
# Guess: a run that is resumed after four of ten batches goes on with the fifth, or starts the epoch anew.
# Seen:  from a checkpoint that a callback saved at step 4 it goes on at batch 4, but with row 0: the last four rows of
#        that epoch are never seen. It warns of "unreliable results" without saying more. From a checkpoint saved once
#        `max_steps=4` has ended the same run, it begins the next epoch, without a word: six rows are left out.
# With:  lightning 2.6.6, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q lightning==2.6.6 torch==2.13.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | grep 'epoch 0' | tee seen.txt
import warnings

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.part, self.seen = torch.nn.Linear(1, 1), []

    def training_step(self, batch, number):
        self.seen.append((self.current_epoch, number, int(batch)))
        return self.part(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.0)


def train(resumed=None, **options):
    model = Model()
    saving = ModelCheckpoint("on_the_way", filename="{step}", every_n_train_steps=4, save_top_k=-1)
    quiet = {"accelerator": "cpu", "logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    loader = torch.utils.data.DataLoader(torch.arange(10.0)[:, None], batch_size=1)
    trainer = lightning.Trainer(callbacks=[saving], **options, **quiet)
    trainer.fit(model, loader, ckpt_path=resumed)
    if resumed is None:
        trainer.save_checkpoint("at_the_end.ckpt")
    return model.seen


train(max_steps=4)
for path in ("on_the_way/step=4.ckpt", "at_the_end.ckpt"):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seen = train(path, max_epochs=2)
    print(path, "| warns", any("unreliable" in str(each.message) for each in caught), end=" ")
    print("| epoch 0, batch:row", *(f"{number}:{row}" for epoch, number, row in seen if epoch == 0), end=" ")
    print("| epoch 1", len([row for epoch, _, row in seen if epoch == 1]), "rows")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
on_the_way/step=4.ckpt | warns True | epoch 0, batch:row 4:0 5:1 6:2 7:3 8:4 9:5 | epoch 1 10 rows
at_the_end.ckpt | warns False | epoch 0, batch:row | epoch 1 10 rows
SEEN
