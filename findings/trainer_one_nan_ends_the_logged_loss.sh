#!/usr/bin/env bash
# One row without a label makes each later loss in the Trainer's log NaN, though the model goes on learning.
#
# Guess: with `logging_nan_inf_filter=False` the log shows NaN where the loss was NaN; a log of NaN to its end means
#        that the weights are lost.
# Seen:  the sum since the last log is set back by subtracting it from itself: NaN stays NaN. Each later record has a
#        loss that is NaN, with a usual gradient norm, and evaluation comes down. `train_loss` is NaN, too. The row
#        itself has gradient 0. With the filter, which is on unless switched off, that step has loss 0.0.
# With:  transformers 5.24.0, datasets 5.2.0, accelerate 1.15.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q transformers==5.24.0 datasets==5.2.0 accelerate==1.15.0 torch==2.13.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | grep '^filter' | tee seen.txt
import torch
from datasets import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

rows = [{"input_ids": [5, 6, 7, 8], "labels": [5, 6, 7, 8] if step != 3 else [-100] * 4} for step in range(1, 13)]
sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
for kept in (False, True):
    torch.manual_seed(0)
    options = {"use_cpu": True, "report_to": "none", "save_strategy": "no", "disable_tqdm": True}
    options |= {"per_device_train_batch_size": 1, "learning_rate": 1e-2, "train_sampling_strategy": "sequential"}
    arguments = TrainingArguments("run", max_steps=12, logging_steps=1, logging_nan_inf_filter=kept, **options)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=16, **sizes))
    trainer = Trainer(model, arguments, train_dataset=Dataset.from_list(rows), eval_dataset=Dataset.from_list(rows[:1]))
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    after = trainer.evaluate()["eval_loss"]
    log = {record["step"]: record for record in trainer.state.log_history if "loss" in record}
    print("filter", kept, "| loss is a number", "".join("-+"[log[step]["loss"] == log[step]["loss"]] for step in log), end=" | ")
    print("step 3", log[3]["loss"], log[3]["grad_norm"], "| gradient at 12", log[12]["grad_norm"] > 0, end=" | ")
    print("evaluation falls by half", after < before / 2)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
filter False | loss is a number ++---------- | step 3 nan 0.0 | gradient at 12 True | evaluation falls by half True
filter True | loss is a number ++++++++++++ | step 3 0.0 0.0 | gradient at 12 True | evaluation falls by half True
SEEN
