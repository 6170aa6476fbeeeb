#!/usr/bin/env bash
# The Trainer's `eval_loss` has the label smoothing of training in it, and rises while the model only gets better.
#
# Guess: smoothing is for training: `eval_loss` stays the cross entropy, and exp(eval_loss) the perplexity.
# Seen:  the same weights and rows have two values. A model whose loss is 0.03 has an `eval_loss` of about 0.7 with
#        `label_smoothing_factor=0.1`, and one whose loss is 0.0001 has 1.1. Best checkpoints and early stops go by that
#        value, so that it is taken for overfitting. Runs of different factors cannot be held against each other.
# With:  transformers 5.24.0, torch 2.13.0, accelerate 1.15.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q transformers==5.24.0 accelerate==1.15.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | grep "^factor" | tee seen.txt
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

torch.manual_seed(0)
sizes = {"vocab_size": 32, "n_positions": 16, "n_embd": 32, "n_layer": 1, "n_head": 2}
model = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))
row = torch.arange(6)
rows = [{"input_ids": row, "labels": row}] * 8
common = {"output_dir": "out", "save_strategy": "no", "report_to": [], "use_cpu": True, "disable_tqdm": True}
losses = {0.0: [], 0.1: []}
for steps in (40, 200):
    for factor in losses:
        settings = {"max_steps": steps, "learning_rate": 1e-2, "label_smoothing_factor": factor}
        trainer = Trainer(model, TrainingArguments(**common, **settings), train_dataset=rows, eval_dataset=rows)
        if not factor:
            trainer.train()
        losses[factor].append(trainer.evaluate()["eval_loss"])
first, last = losses[0.0]
print("factor 0.0 | below 0.1", first < 0.1, "| later below 0.001", last < 0.001)
first, last = losses[0.1]
print("factor 0.1 | above 0.5", first > 0.5, "| later above 1.0", last > 1)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
factor 0.0 | below 0.1 True | later below 0.001 True
factor 0.1 | above 0.5 True | later above 1.0 True
SEEN
