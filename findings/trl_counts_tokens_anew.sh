#!/usr/bin/env bash
# TRL's `num_tokens` falls as a run is resumed: it counts from zero again, while the steps go on.
#
# Guess: `num_tokens` is the total since the beginning of the run, as `step` is, which comes from the checkpoint.
# Seen:  a run of four steps that is resumed after two logs fewer tokens at step 3 than at step 2. It ends with the
#        tokens of its second half, so that a curve of loss by tokens runs back over itself.
# With:  trl 1.16.0, transformers 5.24.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q trl==1.16.0 transformers==5.24.0 torch==2.13.0 2>/dev/null
cd "$folder"
cat > train.py <<'PYTHON'
import sys

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

words = {word: number for number, word in enumerate(["<pad>", "<eos>", "<unk>", "one", "two"])}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")
sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
model = LlamaForCausalLM(LlamaConfig(vocab_size=8, pad_token_id=0, eos_token_id=1, bos_token_id=None, **sizes))
options = {"use_cpu": True, "bf16": False, "report_to": "none", "disable_tqdm": True, "logging_steps": 1}
arguments = SFTConfig("run", max_steps=4, save_steps=2, per_device_train_batch_size=2, **options)
rows = Dataset.from_list([{"text": "one two one"}] * 8)
trainer = SFTTrainer(model, args=arguments, train_dataset=rows, processing_class=tokenizer)
trainer.train(resume_from_checkpoint=sys.argv[1] if len(sys.argv) > 1 else None)
log = [record for record in trainer.state.log_history if "loss" in record]
print("steps", *(record["step"] for record in log), "| num_tokens", *(int(record["num_tokens"]) for record in log))
PYTHON
(env/bin/python train.py && env/bin/python train.py run/checkpoint-2) 2>/dev/null | grep '^steps' | tee seen.txt
diff seen.txt - <<'SEEN' && echo "as found"
steps 1 2 3 4 | num_tokens 8 16 24 32
steps 1 2 3 4 | num_tokens 8 16 8 16
SEEN
