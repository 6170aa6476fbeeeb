#!/usr/bin/env bash
# Whether documents that are packed into one row see each other is decided by `use_cache`.
#
# Guess: position ids that start anew either part the documents or do not; a cache of keys changes no output.
# Seen:  transformers parts documents by their position ids only without a cache and without an attention mask. In a
#        plain `model(input_ids, position_ids=...)`, which has a cache, the second document sees the first. A mask of
#        nothing but ones has it see the first, too. The Trainer switches the cache off.
# With:  transformers 5.24.0, accelerate 1.15.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q transformers==5.24.0 accelerate==1.15.0 torch==2.13.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from transformers import LlamaConfig, LlamaForCausalLM, TrainingArguments

torch.manual_seed(0)
sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
model = LlamaForCausalLM(LlamaConfig(vocab_size=64, **sizes)).eval()
first, second = torch.randint(64, (2, 1, 8))
row, positions = torch.cat([first, second], 1), torch.arange(8).repeat(2)[None]
with torch.no_grad():
    alone = model(second).logits
    for name, options in {
        "as called": {},
        "use_cache=False": {"use_cache": False},
        "use_cache=False and a mask of ones": {"use_cache": False, "attention_mask": torch.ones_like(row)},
    }.items():
        packed = model(row, position_ids=positions, **options).logits[:, 8:]
        print(name, "| as if alone:", torch.allclose(packed, alone, atol=1e-5))
print("the Trainer's use_cache", TrainingArguments(use_cpu=True).use_cache)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
as called | as if alone: False
use_cache=False | as if alone: True
use_cache=False and a mask of ones | as if alone: False
the Trainer's use_cache False
SEEN
