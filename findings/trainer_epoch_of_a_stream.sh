#!/usr/bin/env bash
# The epoch that the Trainer logs for a stream says little of how often the data was seen: 0.33, then 1.03.
#
# Guess: `epoch` grows evenly with the steps, and is the number of passes over the data, as it is for other data sets.
# Seen:  a stream has no length, so each pass counts as `max_steps` long until it ends, and then as whole. Of 30 steps
#        over ten rows the epochs go 0.1, 0.2, 0.33, 1.03; the run ends at 2.33, after exactly three passes.
# With:  transformers 5.24.0, datasets 5.2.0, accelerate 1.15.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q transformers==5.24.0 datasets==5.2.0 accelerate==1.15.0 torch==2.13.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | grep Dataset | tee seen.txt
import torch
from datasets import Dataset
from transformers import Trainer, TrainingArguments


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, row, labels):
        return {"loss": ((self.weight * row - labels) ** 2).mean()}


rows = Dataset.from_dict({"row": [1.0] * 10, "labels": [2.0] * 10})
for data in (rows, rows.to_iterable_dataset()):
    options = {"use_cpu": True, "report_to": "none", "save_strategy": "no", "disable_tqdm": True}
    arguments = TrainingArguments("run", max_steps=30, per_device_train_batch_size=1, logging_steps=1, **options)
    trainer = Trainer(Model(), arguments, train_dataset=data)
    trainer.train()
    epochs = {record["step"]: round(record["epoch"], 2) for record in trainer.state.log_history if "loss" in record}
    print(type(data).__name__, {step: epochs[step] for step in (3, 6, 10, 11, 20, 21, 30)})
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
Dataset {3: 0.3, 6: 0.6, 10: 1.0, 11: 1.1, 20: 2.0, 21: 2.1, 30: 3.0}
IterableDataset {3: 0.1, 6: 0.2, 10: 0.33, 11: 1.03, 20: 1.33, 21: 2.03, 30: 2.33}
SEEN
