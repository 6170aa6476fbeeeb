#!/usr/bin/env bash
# The Trainer's `eval_loss` depends on the size of evaluation batches; the loss that it trains on does not.
#
# Guess: at a learning rate of 0 the same rows have one loss, in training and in evaluation, in batches of any size.
# Seen:  since gradients are accumulated by tokens, the training loss is the mean over tokens. `eval_loss` is a mean
#        over batches: one label counts as much in a batch of its own as 63. Of the same rows and weights the loss
#        is 4.92 in training, 4.92 in one batch of evaluation and 9.18 row by row: a gap that is no overfitting.
# With:  transformers 5.24.0, datasets 5.2.0, accelerate 1.15.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q transformers==5.24.0 datasets==5.2.0 accelerate==1.15.0 torch==2.13.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | grep '^batches' | tee seen.txt
import torch
from datasets import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

torch.manual_seed(0)
sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
model = LlamaForCausalLM(LlamaConfig(vocab_size=16, **sizes))
model.lm_head.weight.data *= 30
long = {"input_ids": [5, 6, 7, 8] * 16, "labels": [5, 6, 7, 8] * 16}
short = {"input_ids": [3, 9] + [0] * 62, "labels": [3, 9] + [-100] * 62}
rows = Dataset.from_list([long, short] * 4)
for size in (8, 1):
    options = {"use_cpu": True, "report_to": "none", "save_strategy": "no", "disable_tqdm": True, "max_steps": 1}
    options |= {"per_device_train_batch_size": size, "gradient_accumulation_steps": 8 // size, "learning_rate": 0.0}
    arguments = TrainingArguments("run", logging_steps=1, per_device_eval_batch_size=size, **options)
    trainer = Trainer(model, arguments, train_dataset=rows, eval_dataset=rows)
    evaluated = trainer.evaluate()["eval_loss"]
    trainer.train()
    (trained,) = (record["loss"] for record in trainer.state.log_history if "loss" in record)
    print("batches of", size, "| loss", round(trained, 2), "| eval_loss", round(evaluated, 2))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
batches of 8 | loss 4.92 | eval_loss 4.92
batches of 1 | loss 4.92 | eval_loss 9.18
SEEN
