#!/usr/bin/env bash
# The reward accuracy of a DPO run begins at 0, not at one half.
#
# Guess: an untrained policy prefers the chosen answer in about half of the pairs: `rewards/accuracies` begins near 0.5.
# Seen:  the policy is its own reference, so each reward is exactly 0, and a tie counts as wrong. The accuracy is 0.0
#        at step 1 and in an evaluation before it, with a loss of ln 2: nothing is the wrong way round.
# With:  trl 1.16.0, transformers 5.24.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q trl==1.16.0 transformers==5.24.0 torch==2.13.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | grep '^step\|^before' | tee seen.txt
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer

words = {word: number for number, word in enumerate(["<pad>", "<eos>", "<unk>", "one", "two", "yes", "no"])}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")
sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
model = LlamaForCausalLM(LlamaConfig(vocab_size=8, pad_token_id=0, eos_token_id=1, bos_token_id=None, **sizes))
model.save_pretrained("model")
tokenizer.save_pretrained("model")
options = {"use_cpu": True, "bf16": False, "report_to": "none", "disable_tqdm": True, "logging_steps": 1}
options |= {"learning_rate": 1e-2, "per_device_train_batch_size": 4, "save_strategy": "no", "warmup_steps": 0}
rows = Dataset.from_list([{"prompt": "one two", "chosen": " yes", "rejected": " no"}] * 8)
arguments = DPOConfig("run", max_steps=2, **options)
trainer = DPOTrainer("model", args=arguments, train_dataset=rows, eval_dataset=rows, processing_class=tokenizer)
print("before", trainer.evaluate()["eval_rewards/accuracies"])
trainer.train()
for record in trainer.state.log_history:
    if "loss" in record:
        print("step", record["step"], "accuracy", record["rewards/accuracies"], "loss is ln 2", abs(record["loss"] - 0.6931) < 1e-4)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
before 0.0
step 1 accuracy 0.0 loss is ln 2 True
step 2 accuracy 1.0 loss is ln 2 False
SEEN
