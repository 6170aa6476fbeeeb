#!/usr/bin/env bash
# The Trainer lowers its rate to a ten thousandth while accuracy rises at each evaluation, with "reduce_lr_on_plateau".
#
# Guess: the scheduler watches `metric_for_best_model`, and `greater_is_better`, which the best checkpoint goes by, says
#        that a higher accuracy is better.
# Seen:  the scheduler is handed the accuracy and keeps PyTorch's `mode="min"`. Each rise is a bad evaluation: with a
#        patience of 2 the rate falls to a tenth every third epoch, though the Trainer itself counts each epoch as the
#        best so far. `greater_is_better=True` changes nothing, `lr_scheduler_kwargs={"mode": "max"}` puts it right. An
#        accuracy that falls keeps its rate.
# With:  transformers 5.24.0, accelerate 1.15.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q transformers==5.24.0 accelerate==1.15.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments


class Rows(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, row):
        return {"feature": torch.ones(1), "labels": torch.ones(())}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, feature, labels):
        outputs = self.weight * feature.squeeze()
        return {"loss": (outputs - labels).square().mean(), "logits": outputs}


def train(title, change, **options):
    accuracy = [0.5]

    def measure(prediction):
        accuracy[0] += change
        return {"accuracy": accuracy[0]}

    kwargs = {"patience": 2, **options.pop("kwargs", {})}
    settings = TrainingArguments(
        "runs",
        num_train_epochs=12,
        learning_rate=0.1,
        eval_strategy="epoch",
        logging_strategy="epoch",
        save_strategy="no",
        lr_scheduler_type="reduce_lr_on_plateau",
        lr_scheduler_kwargs=kwargs,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        **options,
    )
    trainer = Trainer(Model(), settings, train_dataset=Rows(), eval_dataset=Rows(), compute_metrics=measure)
    trainer.log = lambda logs, *rest: trainer.state.log_history.append(logs)
    trainer.train()
    rates = [f"{row['learning_rate']:.0e}" for row in trainer.state.log_history if "learning_rate" in row]
    print(f"{title} | rates", *rates)


train("eval_loss, which falls", 0.03)
train("accuracy, which rises", 0.03, metric_for_best_model="accuracy")
train("accuracy, which rises, greater_is_better", 0.03, metric_for_best_model="accuracy", greater_is_better=True)
train("accuracy, which rises, mode max", 0.03, metric_for_best_model="accuracy", kwargs={"mode": "max"})
train("accuracy, which falls", -0.03, metric_for_best_model="accuracy")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
eval_loss, which falls | rates 1e-01 1e-01 1e-01 1e-01 1e-01 1e-01 1e-01 1e-01 1e-01 1e-01 1e-01 1e-01
accuracy, which rises | rates 1e-01 1e-01 1e-01 1e-01 1e-02 1e-02 1e-02 1e-03 1e-03 1e-03 1e-04 1e-04
accuracy, which rises, greater_is_better | rates 1e-01 1e-01 1e-01 1e-01 1e-02 1e-02 1e-02 1e-03 1e-03 1e-03 1e-04 1e-04
accuracy, which rises, mode max | rates 1e-01 1e-01 1e-01 1e-01 1e-01 1e-01 1e-01 1e-01 1e-01 1e-01 1e-01 1e-01
accuracy, which falls | rates 1e-01 1e-01 1e-01 1e-01 1e-01 1e-01 1e-01 1e-01 1e-01 1e-01 1e-01 1e-01
SEEN
