#!/usr/bin/env bash
# With two optimizers Lightning names a checkpoint `step=40` that was saved where its own log says step 19.
#
# Guess: the step in the name of a checkpoint is the step at which metrics.csv has the metrics of that moment.
# Seen:  the step that names checkpoints, and that `max_steps` bounds, counts the steps of each optimizer; the logger's
#        step counts batches. A GAN's checkpoint lies at twice the step of its log, and `max_steps=10` is five batches.
# With:  lightning 2.6.6, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q lightning==2.6.6 torch==2.13.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | grep optimizers | tee seen.txt
import csv
from pathlib import Path

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger


class Model(lightning.LightningModule):
    def __init__(self, count):
        super().__init__()
        self.automatic_optimization = False
        self.parts = torch.nn.ModuleList(torch.nn.Linear(1, 1) for _ in range(count))
        self.batches = 0

    def training_step(self, batch, number):
        self.batches += 1
        optimizers = self.optimizers()
        for optimizer, part in zip(optimizers if len(self.parts) > 1 else [optimizers], self.parts):
            optimizer.zero_grad()
            self.manual_backward(part(batch).mean())
            optimizer.step()
        self.log("batches", float(self.batches))

    def configure_optimizers(self):
        return [torch.optim.SGD(part.parameters(), 0.1) for part in self.parts]


quiet = {"accelerator": "cpu", "enable_progress_bar": False, "enable_model_summary": False}
loader = torch.utils.data.DataLoader(torch.ones(20, 1), batch_size=1)
for count in (1, 2):
    folder = Path(f"checkpoints{count}")
    trainer = lightning.Trainer(
        max_epochs=1,
        logger=CSVLogger(f"logs{count}"),
        log_every_n_steps=1,
        callbacks=[ModelCheckpoint(folder, save_top_k=-1, every_n_epochs=1)],
        **quiet,
    )
    trainer.fit(Model(count), loader)
    (file,) = Path(f"logs{count}").rglob("metrics.csv")
    with file.open() as rows:
        last = list(csv.DictReader(rows))[-1]
    model = Model(count)
    lightning.Trainer(max_steps=10, logger=False, enable_checkpointing=False, **quiet).fit(model, loader)
    saved = " ".join(path.name for path in folder.iterdir())
    print("optimizers", count, "|", saved, "| logged step", last["step"], "| max_steps=10 gives", model.batches, "batches")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
optimizers 1 | epoch=0-step=20.ckpt | logged step 19 | max_steps=10 gives 10 batches
optimizers 2 | epoch=0-step=40.ckpt | logged step 19 | max_steps=10 gives 5 batches
SEEN
